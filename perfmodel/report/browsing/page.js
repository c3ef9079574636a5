// Asks every two seconds for what has changed, and puts it in place; choosing from a list shows it at once.
"use strict";
const content = document.getElementById("content");
const live = document.getElementById("live");
const form = document.querySelector("form");
form.addEventListener("change", () => form.requestSubmit());

async function renew() {
  try {
    const query = new URLSearchParams(new FormData(form));
    query.set("stamp", content.dataset.stamp);
    const answer = await fetch(`/content?${query}`);
    live.textContent = "It is looked at again every two seconds.";
    if (answer.status !== 200) return;
    const open = [...content.querySelectorAll("details")].map((each) => each.open);
    content.innerHTML = await answer.text();
    content.querySelectorAll("details").forEach((each, place) => { each.open = open[place] || false; });
    content.dataset.stamp = answer.headers.get("X-Stamp");
  } catch {
    live.textContent = "perfmodel browse has ended; this is what it showed last.";
  }
}
renew();
setInterval(renew, 2000);
