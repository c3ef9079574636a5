"use strict";
// Draws the charts of a report page from the JSON block in it. Sizes are CSS pixels, times are seconds.
(() => {
  const DATA = JSON.parse(document.getElementById("data").textContent);
  const COLOURS = 8, MOST_LINES = 6, MOST_LABELLED = 4, MOST_NAMED = 3, FONT = 14;
  const main = document.querySelector("main");

  // --- elements -------------------------------------------------------------------------------------------------

  const create = (space) => (name, attributes = {}, ...children) => {
    const element = space ? document.createElementNS(space, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  };
  const svg = create("http://www.w3.org/2000/svg"), html = create(null);
  const colour = (i) => `c${i % COLOURS}`;

  // A closed path around (x, y); the shape goes with the colour, and differs when colours return.
  const polygon = (x, y, corners) => "M" + corners.map(([a, b]) => `${(x + a).toFixed(1)},${(y + b).toFixed(1)}`).join("L") + "Z";
  const SHAPES = [
    (x, y, r) => `M${(x - r).toFixed(1)},${y.toFixed(1)}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
    (x, y, r) => polygon(x, y, [[-r, -r], [r, -r], [r, r], [-r, r]].map(([a, b]) => [a * 0.9, b * 0.9])),
    (x, y, r) => polygon(x, y, [[0, -1.3 * r], [1.3 * r, 0], [0, 1.3 * r], [-1.3 * r, 0]]),
    (x, y, r) => polygon(x, y, [[0, -1.25 * r], [1.2 * r, 0.9 * r], [-1.2 * r, 0.9 * r]]),
    (x, y, r) => polygon(x, y, [[0, 1.25 * r], [1.2 * r, -0.9 * r], [-1.2 * r, -0.9 * r]]),
    (x, y, r) => polygon(x, y, [[-1.3, -0.45], [-0.45, -0.45], [-0.45, -1.3], [0.45, -1.3], [0.45, -0.45], [1.3, -0.45], [1.3, 0.45], [0.45, 0.45], [0.45, 1.3], [-0.45, 1.3], [-0.45, 0.45], [-1.3, 0.45]].map(([a, b]) => [a * r, b * r])),
    (x, y, r) => polygon(x, y, [0, 1, 2, 3, 4].map((i) => [1.25 * r * Math.sin(i * 1.2566), -1.25 * r * Math.cos(i * 1.2566)])),
  ];
  // What lies beyond an axis is an arrow at its end, to the right (1) or to the left (-1).
  const arrow = (x, y, r, way) => polygon(x, y, [[1.8 * r * way, 0], [-0.6 * r * way, -1.3 * r], [-0.6 * r * way, 1.3 * r]]);
  const shape = (i) => SHAPES[(i + Math.floor(i / COLOURS)) % SHAPES.length];

  // --- numbers --------------------------------------------------------------------------------------------------

  const significant = (value, digits = 3) => String(Number(value.toPrecision(digits)));
  const scaled = (value, units, unit) => {
    const [factor, prefix] = units.find(([f]) => Math.abs(value) >= f * 0.9995) || units[units.length - 1];
    return `${significant(value / factor)} ${prefix}${unit}`.trim();
  };
  const seconds = (value) => value === null ? "–" : scaled(value, [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]], "s");
  const amount = (value, unit = "") => scaled(value, [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]], unit);
  const size = (value) => value < 1e4 ? String(value) : amount(value);
  const plain = (value) => significant(value, 2);
  const error = (measured, predicted) => `${predicted >= measured ? "+" : "−"}${significant(Math.abs(predicted / measured - 1) * 100)} %`;

  // --- axes -----------------------------------------------------------------------------------------------------

  function logTicks(low, high, most) {
    const steps = (digits) => {
      const found = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
        for (const digit of digits) {
          const tick = Number(`${digit}e${power}`);
          if (tick >= low * 0.999 && tick <= high * 1.001) found.push(tick);
        }
      return found;
    };
    let ticks = [[1, 1.5, 2, 3, 4, 5, 6, 8], [1, 2, 3, 5], [1, 2, 5], [1, 3], [1]].map(steps).find((found) => found.length <= most);
    if (!ticks) {
      const decades = steps([1]), every = Math.ceil(decades.length / most);
      ticks = decades.filter((_, i) => i % every === 0);
    }
    return ticks;
  }

  const logScale = (low, high, from, to) => {
    const a = Math.log(low), factor = (to - from) / (Math.log(high) - a);
    return Object.assign((value) => from + (Math.log(value) - a) * factor, { low, high });
  };
  const around = (values, room) => [Math.min(...extent(values)) / room, Math.max(...extent(values)) * room];
  const extent = (values) => values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);

  // A chart's empty frame: grid, ticks, titles. Returns what draws into it.
  function frame(holder, { label, height, x, y, left = 66, right = 14, top = 34, bottom = 52 }) {
    const width = Math.max(280, holder.clientWidth || main.clientWidth - 40);
    const image = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0, "aria-label": `${label}. Arrow keys go from mark to mark.` });
    const plot = { left, right: width - right, top, bottom: height - bottom };
    const place = {
      x: logScale(x.low, x.high, plot.left, plot.right),
      y: y ? logScale(y.low, y.high, plot.bottom, plot.top) : null,
    };
    const back = svg("g"), front = svg("g");
    const grid = svg("g");
    for (const tick of x.ticks || logTicks(x.low, x.high, Math.max(2, Math.floor((plot.right - plot.left) / 76)))) {
      const at = place.x(tick);
      grid.append(svg("line", { class: "grid", x1: at, x2: at, y1: plot.top, y2: plot.bottom }),
        svg("text", { x: Math.min(at, width - 18), y: plot.bottom + 19, "text-anchor": "middle" }, x.format(tick)));
    }
    if (y) for (const tick of logTicks(y.low, y.high, Math.max(2, Math.floor((plot.bottom - plot.top) / 44)))) {
      const at = place.y(tick);
      grid.append(svg("line", { class: "grid", x1: plot.left, x2: plot.right, y1: at, y2: at }),
        svg("text", { x: plot.left - 8, y: at + 5, "text-anchor": "end" }, y.format(tick)));
    }
    grid.append(svg("text", { class: "title", x: plot.right, y: height - 8, "text-anchor": "end" }, x.title));
    if (y) grid.append(svg("text", { class: "title", x: 2, y: 16 }, y.title));
    image.append(back, grid, front);
    holder.replaceChildren(image);
    return { image, plot, place, back, front, width };
  }

  // --- hover, touch and keys ------------------------------------------------------------------------------------

  const tip = html("div", { class: "tip", role: "status", hidden: "" });
  document.body.append(tip);

  function showTip(lines, left, top) {
    tip.replaceChildren(...lines.map((line) => html("div", {}, line)));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    // In the page rather than the window, so that it stays with its mark when the page scrolls.
    tip.style.left = `${Math.max(8, Math.min(left + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${scrollY + (top - box.height - 14 > 8 ? top - box.height - 14 : top + 18)}px`;
  }

  // `targets` are {x, y, lines}, in the image's own pixels; `ring` marks the chosen one.
  function hover(image, targets, reach = 36) {
    if (!targets.length) return;
    const ordered = [...targets].sort((a, b) => a.x - b.x || a.y - b.y);
    const ring = svg("circle", { class: "ring", r: 9, visibility: "hidden" });
    image.append(ring);
    let chosen = -1;
    const hide = () => { tip.hidden = true; ring.setAttribute("visibility", "hidden"); };
    const show = (target) => {
      const box = image.getBoundingClientRect(), scale = box.width / image.viewBox.baseVal.width;
      ring.setAttribute("cx", target.x); ring.setAttribute("cy", target.y); ring.setAttribute("visibility", "visible");
      showTip(target.lines, box.left + target.x * scale, box.top + target.y * scale);
    };
    const nearest = (event) => {
      const box = image.getBoundingClientRect(), scale = image.viewBox.baseVal.width / box.width;
      const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
      let best = null, least = reach * reach;
      for (const target of ordered) {
        const inside = target.box && x >= target.box[0] && x <= target.box[2] && y >= target.box[1] && y <= target.box[3];
        const distance = inside ? 0 : target.box ? Infinity : (target.x - x) ** 2 + (target.y - y) ** 2;
        if (distance < least) { best = target; least = distance; }
      }
      if (best) { chosen = ordered.indexOf(best); show(best); } else hide();
    };
    image.addEventListener("pointermove", nearest);
    image.addEventListener("pointerdown", nearest);
    image.addEventListener("pointerleave", hide);
    image.addEventListener("blur", hide);
    image.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (event.key === "Home") chosen = 0; else if (event.key === "End") chosen = ordered.length - 1;
      else if (!step) return; else chosen = (chosen + step + ordered.length) % ordered.length;
      event.preventDefault();
      show(ordered[chosen]);
    });
  }

  // What a reader has switched off in a chart's legend, by the keys of its entries; it outlives drawing anew.
  const HIDDEN = new WeakMap();
  const hidden = (figure) => HIDDEN.get(figure) || HIDDEN.set(figure, new Set()).get(figure);

  // An entry with a key is a switch: what it stands for is drawn, or not.
  function legend(figure, entries, redraw) {
    const list = figure.querySelector(".legend") || figure.appendChild(html("ul", { class: "legend" })), off = hidden(figure);
    list.replaceChildren(...entries.map(({ path, kind, dashes, index, name, key }) => {
      const shown = [svg("svg", { viewBox: "0 0 18 18", "aria-hidden": "true" }, svg("path", { d: path, class: kind, "stroke-dasharray": dashes || "none" })), html("span", {}, name)];
      const item = html("li", { class: index === null ? "" : colour(index) });
      if (!key || !redraw) { item.append(...shown); return item; }
      const button = html("button", { type: "button", "aria-pressed": String(!off.has(key)), title: off.has(key) ? "show" : "hide" }, ...shown);
      button.addEventListener("click", () => {
        if (!off.delete(key)) off.add(key);
        redraw();
        [...list.querySelectorAll("button")].find((other) => other.textContent === name)?.focus();
      });
      item.append(button);
      return item;
    }));
  }
  const ROLES = [
    { path: SHAPES[0](9, 9, 5), kind: "filled", index: 7, name: "filled: no fit has seen it", key: "fitted 0" },
    { path: SHAPES[0](9, 9, 5), kind: "hollow", index: 7, name: "hollow: in the fit", key: "fitted 1" },
  ];
  const familyEntries = (families, roles, shown) => [
    ...families.map((name, i) => ({ path: shape(i)(9, 9, 5), kind: "filled", index: i, name, key: `family ${i}` })).filter((entry) => !shown || shown.has(entry.index)),
    ...(roles ? ROLES : []),
  ];

  // --- marks of many points in few paths ------------------------------------------------------------------------

  function marks(front, points, radius) {
    const paths = new Map();
    for (const { family, fitted, x, y, beyond } of points) {
      const key = `${family} ${fitted}`;
      paths.set(key, (paths.get(key) || "") + (beyond ? arrow(x, y, radius, beyond) : shape(family)(x, y, radius)));
    }
    for (const [key, d] of [...paths].sort()) {
      const [family, fitted] = key.split(" ");
      front.append(svg("g", { class: colour(Number(family)) }, svg("path", { d, class: fitted === "1" ? "hollow" : "filled" })));
    }
  }
  const told = (model, [family, variant, sizes, measured, predicted, fitted, flags]) => [
    `${model.families[family]} ${sizes}`, model.variants[variant],
    `measured ${seconds(measured)}, predicted ${seconds(predicted)} (${error(measured, predicted)})`,
    (fitted ? "in the fit" : "no fit has seen it") + (flags ? `; ${flags}` : ""),
  ].filter(Boolean);

  // --- what can be taken away -----------------------------------------------------------------------------------

  const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "paint-order"];
  function save(name, kind, text) {
    const link = html("a", { href: URL.createObjectURL(new Blob([text], { type: kind })), download: name });
    link.click();
    URL.revokeObjectURL(link.href);
  }
  // A chart as a file of its own: with the looks that the page's style gives it.
  function asSvg(image) {
    const copy = image.cloneNode(true), from = [image, ...image.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
    from.forEach((element, i) => {
      const looks = getComputedStyle(element);
      for (const look of LOOKS) to[i].setAttribute(look, looks.getPropertyValue(look));
    });
    const { width, height } = image.getBoundingClientRect();
    for (const [key, value] of [["width", width], ["height", height]]) copy.setAttribute(key, Math.round(value));
    return new XMLSerializer().serializeToString(copy);
  }
  function asCsv(model) {
    const cell = (value) => typeof value === "number" ? String(value) : `"${String(value).replaceAll('"', '""')}"`;
    const rows = model.points.map((p) => [model.families[p[0]], model.variants[p[1]], p[2], p[3], p[4], p[5] ? "fit" : "not seen", p[6] || ""]);
    return [["kernel", "variant", "sizes", "measured_s", "predicted_s", "role", "flags"], ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
  }
  function offer(figure, model) {
    if (figure.querySelector(".save")) return;
    const button = (label, act) => { const made = html("button", { type: "button" }, label); made.addEventListener("click", act); return made; };
    const picture = button("Save as SVG", () => save(`${figure.dataset.chart}.svg`, "image/svg+xml", asSvg(figure.querySelector(".plot svg"))));
    const data = figure.dataset.chart === "predicted" ? button("Save the times as CSV", () => save("times.csv", "text/csv", asCsv(model))) : null;
    figure.append(html("div", { class: "save" }, picture, data));
  }

  // --- the charts -----------------------------------------------------------------------------------------------

  const CHARTS = {
    predicted(figure, holder, model) {
      const [low, high] = around(model.points.flatMap((p) => [p[3], p[4]]), 1.6);
      const axis = { low, high, format: seconds };
      const wide = holder.clientWidth || main.clientWidth;
      const { image, plot, place, back, front } = frame(holder, {
        label: "Measured against predicted times", height: Math.min(560, Math.max(340, wide * 0.75)),
        x: { ...axis, title: "measured" }, y: { ...axis, title: "predicted" },
      });
      const clip = (value) => Math.min(high, Math.max(low, value));
      for (const [band, kind] of [[0.3, "wide-band"], [0.1, "band"]]) {
        const edge = (factor) => [low, Math.min(high, Math.max(low, low / factor)), Math.max(low, Math.min(high, high / factor)), high]
          .map((at) => [place.x(at), place.y(clip(at * factor))]);
        back.append(svg("path", { class: kind, d: "M" + [...edge(1 + band), ...edge(1 - band).reverse()].map((p) => p.map((v) => v.toFixed(1))).join("L") + "Z" }));
      }
      front.append(svg("line", { class: "equal", x1: plot.left, y1: plot.bottom, x2: plot.right, y2: plot.top }));
      const isOff = hidden(figure), seen = model.points.filter((p) => !isOff.has(`family ${p[0]}`) && !isOff.has(`fitted ${p[5]}`));
      const points = seen.map((p) => ({ family: p[0], fitted: p[5], x: place.x(p[3]), y: place.y(p[4]), lines: told(model, p) }));
      marks(front, points, points.length > 400 ? 3.2 : 4.6);
      const off = (p) => Math.abs(Math.log(p[4] / p[3]));
      const far = seen.map((p, i) => [p, points[i]]).filter(([p]) => Math.abs(p[4] / p[3] - 1) > 0.3).sort(([a], [b]) => off(b) - off(a));
      for (const [p, { x, y }] of far.slice(0, MOST_NAMED)) {
        const right = x > (plot.left + plot.right) / 2;
        front.append(svg("g", { class: `outlier ${colour(p[0])}` }, svg("text", { class: "direct", x: x + (right ? -9 : 9), y: y + 5, "text-anchor": right ? "end" : "start" }, `${model.families[p[0]]} ${p[2]}`)));
      }
      hover(image, points);
      legend(figure, [
        ...familyEntries(model.families, new Set(model.points.map((p) => p[5])).size > 1, new Set(model.points.map((p) => p[0]))),
        { path: "M1,4H17V14H1Z", kind: "band", index: null, name: "within ±10 %" },
        { path: "M1,4H17V14H1Z", kind: "wide-band", index: null, name: "within ±30 %" },
      ], () => CHARTS.predicted(figure, holder, model));
    },

    residuals(figure, holder, model) {
      const ratio = (p) => p[4] / p[3], families = [...new Set(model.points.map((p) => p[0]))].sort((a, b) => a - b);
      const far = Math.min(10, Math.max(1.5, ...extent(model.points.map((p) => Math.max(ratio(p), 1 / ratio(p))))) * 1.06);
      const clip = (value) => Math.min(far, Math.max(1 / far, value));
      const lane = 56, narrow = (holder.clientWidth || main.clientWidth) < 480;
      const ticks = [0.1, 0.2, 0.5, 0.7, 0.9, 1, 1.1, 1.4, 2, 5, 10].filter((t) => t >= 1 / far && t <= far && !((far > 2.2 || narrow) && [0.9, 1.1].includes(t)) && !(far > 4 && narrow && [0.7, 1.4].includes(t)));
      const { image, plot, place, back, front, width } = frame(holder, {
        label: "Predicted by measured time of each family", height: families.length * lane + 64, left: 22, right: 22, top: 8,
        x: { low: 1 / far, high: far, ticks, format: (t) => `${t}×`, title: "predicted ÷ measured" },
      });
      for (const [band, kind] of [[0.3, "wide-band"], [0.1, "band"]]) {
        const from = Math.max(plot.left, place.x(1 - band)), to = Math.min(plot.right, place.x(1 + band));
        back.append(svg("rect", { class: kind, x: from, width: to - from, y: plot.top, height: plot.bottom - plot.top }));
      }
      front.append(svg("line", { class: "equal", x1: place.x(1), x2: place.x(1), y1: plot.top, y2: plot.bottom }));
      const drawn = [];
      families.forEach((family, i) => {
        const own = model.points.filter((p) => p[0] === family).sort((a, b) => a[3] - b[3]), top = plot.top + i * lane;
        front.append(svg("line", { class: "grid", x1: plot.left, x2: plot.right, y1: top, y2: top }));
        own.forEach((p, rank) => drawn.push({
          family, fitted: p[5], lines: told(model, p), x: place.x(clip(ratio(p))), beyond: ratio(p) > far ? 1 : ratio(p) < 1 / far ? -1 : 0,
          y: top + lane - 7 - (own.length > 1 ? rank / (own.length - 1) : 0.5) * (lane - 34),
        }));
        if (own.length > 2) {
          const sorted = own.map(ratio).sort((a, b) => a - b), middle = place.x(clip(sorted[sorted.length >> 1]));
          front.append(svg("line", { class: "median", x1: middle, x2: middle, y1: top + 25, y2: top + lane - 4 }));
        }
      });
      marks(front, drawn, drawn.length > 400 ? 2.8 : 4.4);
      families.forEach((family, i) => {
        const name = `${model.families[family]} (${model.points.filter((p) => p[0] === family).length})`;
        front.append(svg("g", { class: colour(family) }, svg("text", { class: "direct", x: plot.left + 4, y: plot.top + i * lane + 18 }, fitted(name, width - 60))));
      });
      hover(image, drawn);
      if (drawn.some((p) => p.beyond)) legend(figure, [{ path: arrow(8, 9, 5, 1), kind: "filled", index: 7, name: `off by more than ${significant(far, 2)} times, beyond the axis` }]);
    },

    sizes(figure, holder, model) {
      let chooser = figure.querySelector("select");
      const families = [...new Set(model.series.map((line) => line.family))];
      if (!chooser) {
        const id = `family-${figure.dataset.model}`;
        chooser = html("select", { id }, ...families.map((i) => html("option", { value: i }, model.families[i])));
        figure.prepend(html("div", { class: "chooser" }, html("label", { for: id }, "Family"), chooser));
        chooser.addEventListener("change", () => CHARTS.sizes(figure, holder, model));
      }
      const family = Number(chooser.value);
      const all = model.series.filter((line) => line.family === family), names = [...new Set(all.map((line) => line.size))];
      const own = all.filter((line) => line.size === names[0]).slice(0, MOST_LINES);
      const path = (line) => (line.curve.length ? line.curve : line.points.map((p) => [p[0], p[2], p[3]])).filter((p) => p[1] > 0);
      const times = own.flatMap((line) => [...line.points.flatMap((p) => [p[1], p[2]]), ...path(line).map((p) => p[1])]).filter((t) => t > 0);
      const [low, high] = around(times, 1.7), [least, most] = around(own.flatMap((line) => line.points.map((p) => p[0])), 1.12);
      const { image, plot, place, front } = frame(holder, {
        label: `Time against ${names[0]}`, height: Math.min(460, Math.max(330, (holder.clientWidth || 600) * 0.55)),
        x: { low: least, high: most, format: size, title: names[0] }, y: { low, high, format: seconds, title: "time" },
      });
      const labels = short(own.map((line) => line.variant)), targets = [], taken = [];
      const isOff = hidden(figure);
      own.forEach((line, i) => {
        if (isOff.has(`line ${family} ${i}`)) return;
        const group = svg("g", { class: colour(i) }), drawn = path(line);
        const at = (p, offset) => [place.x(p[0]), place.y(Math.min(high, Math.max(low, p[1] + offset * (p[2] || 0))))].map((v) => v.toFixed(1));
        if (drawn.some((p) => p[2])) group.append(svg("path", { class: "spread", d: "M" + [...drawn.map((p) => at(p, 2)), ...drawn.map((p) => at(p, -2)).reverse()].join("L") + "Z" }));
        if (drawn.length) group.append(svg("path", { class: "line", d: "M" + drawn.map((p) => at(p, 0)).join("L") }));
        for (const kind of [0, 1]) {
          const d = line.points.filter((p) => p[4] === kind).map((p) => shape(i)(place.x(p[0]), place.y(p[1]), 4.6)).join("");
          if (d) group.append(svg("path", { class: kind ? "hollow" : "filled", d }));
        }
        for (const [n, measured, predicted, std, inFit] of line.points) targets.push({
          x: place.x(n), y: place.y(measured),
          lines: [`${model.families[family]} ${line.size}=${n}`, line.variant,
            `measured ${seconds(measured)}` + (predicted ? `, predicted ${seconds(predicted)} (${error(measured, predicted)})` : ""),
            std ? `95 % band ± ${seconds(2 * std)}` : "", inFit ? "in the fit" : "no fit has seen it"].filter(Boolean),
        });
        front.append(group);
        const [n, measured] = line.points[line.points.length - 1], y = place.y(measured) - 12, text = labels[i];
        const room = text && own.length <= MOST_LABELLED && text.length * 8.4 < (plot.right - plot.left) / 3 && taken.every((other) => Math.abs(other - y) > 18);
        if (room) {
          taken.push(y);
          front.append(svg("g", { class: colour(i) }, svg("text", { class: "direct", x: place.x(n) - 10, y, "text-anchor": "end" }, text)));
        }
      });
      hover(image, targets);
      legend(figure, [...own.map((line, i) => ({ path: shape(i)(9, 9, 5), kind: "filled", index: i, name: labels[i] || model.families[family], key: own.length > 1 ? `line ${family} ${i}` : "" })),
        ...(new Set(own.flatMap((line) => line.points.map((p) => p[4]))).size > 1 ? ROLES.map((entry) => ({ ...entry, key: "" })) : [])], () => CHARTS.sizes(figure, holder, model));
      const note = figure.querySelector(".drawn") || figure.querySelector("figcaption").appendChild(html("span", { class: "drawn" }));
      note.textContent = all.length > own.length ? ` ${own.length} of this family's ${all.length} lines are drawn; the table has all.` : "";
    },

    costs(figure, holder, model) {
      const { terms, rows } = model.costs, line = 58, left = 4;
      const width = Math.max(280, holder.clientWidth || main.clientWidth - 40);
      const image = svg("svg", { viewBox: `0 0 ${width} ${rows.length * line + 30}`, role: "img", tabindex: 0, "aria-label": "Shares of the predicted times by term. Arrow keys go from part to part." });
      const targets = [], whole = width - left - 6;
      rows.forEach((row, i) => {
        const top = i * line, time = seconds(row.seconds);
        const sum = Math.max(1, row.shares.reduce((a, b) => a + b, 0));
        image.append(svg("text", { x: width - 6, y: top + 17, "text-anchor": "end", class: "strong" }, time),
          svg("text", { x: left, y: top + 17, class: "strong" }, fitted(`${row.kernel} ${row.sizes} ${shortRow(row, rows)}`, whole - time.length * 8 - 12)));
        if (!row.shares.some((share) => share > 0)) image.append(svg("text", { x: left, y: top + 42 }, "the model has no cost for it"));
        let from = left;
        row.shares.forEach((share, term) => {
          const wide = share / sum * whole;
          if (wide > 0.5) {
            const label = `${terms[term]} ${Math.round(share * 100)} %`, percent = `${Math.round(share * 100)} %`;
            const text = [label, percent].find((each) => each.length * 8.8 + 14 < wide);
            const part = svg("g", { class: colour(term) }, svg("rect", { x: from, y: top + 25, width: Math.max(1, wide - 2), height: 24, rx: 3, fill: "currentColor" }));
            if (text) part.append(svg("text", { class: "on-bar", x: from + 7, y: top + 42 }, text));
            image.append(part);
            targets.push({ x: from + wide / 2, y: top + 37, box: [from, top + 23, from + wide, top + 51],
              lines: [`${terms[term]}: ${significant(share * 100)} %`, `${row.kernel} ${row.sizes}`, row.variant, `of ${time} predicted`].filter(Boolean) });
          }
          from += wide;
        });
      });
      for (const tick of [0, 0.25, 0.5, 0.75, 1]) image.append(svg("text", { x: left + tick * whole, y: rows.length * line + 19, "text-anchor": tick === 0 ? "start" : tick === 1 ? "end" : "middle" }, `${tick * 100} %`));
      holder.replaceChildren(image);
      hover(image, targets);
      legend(figure, terms.map((name, i) => ({ path: "M2,2H16V16H2Z", kind: "filled", index: i, name })));
    },

    correlations(figure, holder, model) {
      const { names, values } = model.correlations;
      const wide = Math.max(280, holder.clientWidth || main.clientWidth - 40);
      const longest = Math.min(16, Math.max(...names.map((name) => name.length))) * 8 + 12;
      const cell = Math.max(8, Math.min(44, (Math.min(wide, 760) - longest - 6) / names.length)), side = cell * names.length;
      const labelled = cell >= 15;
      const left = labelled ? longest : 6, top = 6, height = top + side + (labelled ? longest : 6);
      const image = svg("svg", { viewBox: `0 0 ${wide} ${height}`, role: "img", tabindex: 0, "aria-label": "Correlations of parameters. Arrow keys go from pair to pair." });
      const targets = [];
      names.forEach((name, i) => {
        const middle = top + (i + 0.5) * cell, across = left + (i + 0.5) * cell;
        image.append(svg("line", { class: "grid", x1: left, x2: left + i * cell + cell / 2, y1: middle, y2: middle }),
          svg("line", { class: "grid", x1: across, x2: across, y1: middle, y2: top + side }));
        if (labelled) image.append(svg("text", { x: left - 6, y: middle + 5, "text-anchor": "end" }, fitted(name, longest)),
          svg("text", { transform: `translate(${across + 5},${top + side + 6}) rotate(-90)`, "text-anchor": "end" }, fitted(name, longest)));
      });
      values.forEach((row, i) => row.slice(0, i).forEach((value, j) => {
        const x = left + (j + 0.5) * cell, y = top + (i + 0.5) * cell, radius = Math.max(1, Math.sqrt(Math.abs(value)) * cell * 0.44);
        image.append(svg("g", { class: colour(value > 0 ? 0 : 1) }, svg("path", { class: value > 0 ? "filled" : "hollow", d: SHAPES[value > 0 ? 0 : 2](x, y, value > 0 ? radius : radius * 0.8) })));
        targets.push({ x, y, lines: [`${names[i]} and ${names[j]}`, `correlation ${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}`] });
      }));
      holder.replaceChildren(image);
      hover(image, targets, cell);
      legend(figure, [
        { path: SHAPES[0](9, 9, 6), kind: "filled", index: 0, name: "positive" },
        { path: SHAPES[2](9, 9, 5), kind: "hollow", index: 1, name: "negative; the area is the size" },
      ]);
    },

    roofline(figure, holder, model) {
      const { points, bandwidths, rates } = model.roofline, peak = Math.max(...rates.map((r) => r[1]));
      const ridge = peak / Math.max(...bandwidths.map((b) => b[1]));
      const [least, most] = around([...points.map((p) => p[3]), ridge], 2.5);
      const [low, high] = around([...points.map((p) => p[4]), peak], 2.2);
      const { image, plot, place, front } = frame(holder, {
        label: "Roofline", height: Math.min(480, Math.max(340, (holder.clientWidth || 600) * 0.6)), left: 104,
        x: { low: least, high: most, format: plain, title: "FLOP a byte" }, y: { low, high, format: (v) => amount(v, "FLOP/s"), title: "FLOP a second" },
      });
      const clip = (value) => Math.min(high, Math.max(low, value)), DASHES = ["none", "7 4", "2 4"], roofs = [];
      bandwidths.forEach(([name, rate], i) => {
        const from = Math.max(least, low / rate), to = Math.min(most, peak / rate);
        if (from >= to) return;
        front.append(svg("g", { class: colour(i) }, svg("path", { class: "line", "stroke-dasharray": DASHES[i], d: `M${place.x(from)},${place.y(clip(from * rate))}L${place.x(to)},${place.y(clip(to * rate))}` })));
        roofs.push({ path: "M0,9H18", kind: "line", dashes: DASHES[i], index: i, name: `${name}: ${amount(rate, "B/s")}` });
      });
      rates.forEach(([name, rate], i) => {
        if (rate < low) return;
        const from = Math.max(least, rate / Math.max(...bandwidths.map((b) => b[1])));
        front.append(svg("g", { class: colour(i + 4) }, svg("path", { class: "line", "stroke-dasharray": DASHES[i], d: `M${place.x(from)},${place.y(rate)}H${plot.right}` }),
          i === 0 ? svg("text", { class: "direct", x: plot.right - 4, y: place.y(rate) - 9, "text-anchor": "end" }, `${name} ${amount(rate, "FLOP/s")}`) : null));
        roofs.push({ path: "M0,9H18", kind: "line", dashes: DASHES[i], index: i + 4, name: `${name}: ${amount(rate, "FLOP/s")}` });
      });
      const isOff = hidden(figure);
      const drawn = points.filter((p) => !isOff.has(`family ${p[0]}`)).map((p) => ({ family: p[0], fitted: 0, x: place.x(p[3]), y: place.y(p[4]),
        lines: [`${model.families[p[0]]} ${p[2]}`, p[1], `${significant(p[3])} FLOP a byte`, `${amount(p[4], "FLOP/s")}, ${amount(p[4] / p[3], "B/s")}`].filter(Boolean) }));
      marks(front, drawn, 4.6);
      hover(image, drawn);
      legend(figure, [...familyEntries(model.families, false, new Set(points.map((p) => p[0]))), ...roofs], () => CHARTS.roofline(figure, holder, model));
    },

    devices(figure, holder, { comparison }) {
      const [first, second] = comparison.names, { kernels } = comparison, axis = (i) => {
        const [low, high] = around(kernels.map((k) => k[3][i]), 1.6);
        return { low, high, format: seconds, title: i ? second : first };
      };
      const families = [...new Set(kernels.map((k) => k[0]))];
      const { image, plot, place, front } = frame(holder, { label: `Times of ${second} against ${first}`, height: 420, x: axis(0), y: axis(1) });
      for (const factor of [0.01, 0.1, 1, 10, 100]) {
        const from = Math.max(place.x.low, place.y.low / factor), to = Math.min(place.x.high, place.y.high / factor);
        if (from < to) front.append(svg("line", { class: factor === 1 ? "equal" : "grid", x1: place.x(from), y1: place.y(from * factor), x2: place.x(to), y2: place.y(to * factor) }));
      }
      const isOff = hidden(figure), seen = kernels.filter((k) => !isOff.has(`family ${families.indexOf(k[0])}`));
      const drawn = seen.map((k) => ({ family: families.indexOf(k[0]), fitted: 0, x: place.x(k[3][0]), y: place.y(k[3][1]),
        lines: [`${k[0]} ${k[2]}`, k[1], `${first}: ${seconds(k[3][0])}`, `${second}: ${seconds(k[3][1])}`, `ratio ${significant(k[3][1] / k[3][0])}`].filter(Boolean) }));
      marks(front, drawn, 4.6);
      hover(image, drawn);
      legend(figure, familyEntries(families, false), () => CHARTS.devices(figure, holder, { comparison }));
    },
  };

  // Text that fits into so many pixels.
  function fitted(text, width) {
    const most = Math.max(4, Math.floor(width / (FONT * 0.56)));
    return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
  }
  // Variants by the tags in which they differ.
  function short(variants) {
    const split = variants.map((variant) => variant.split(" "));
    return split.map((words) => words.filter((word) => !split.every((other) => other.includes(word))).join(" "));
  }
  function shortRow(row, rows) {
    const same = rows.filter((other) => other.kernel === row.kernel);
    return same.length > 1 ? short(same.map((other) => other.variant))[same.indexOf(row)] : "";
  }

  // --- the page -------------------------------------------------------------------------------------------------

  function draw() {
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      if (figure.closest("[hidden]")) continue;
      const holder = figure.querySelector(".plot"), { chart, model, comparison } = figure.dataset;
      CHARTS[chart](figure, holder, model === undefined ? { comparison: DATA.comparisons[Number(comparison)] } : DATA.models[Number(model)]);
      if (figure.querySelector(".plot svg")) offer(figure, DATA.models[Number(model)]);
    }
  }

  const articles = [...document.querySelectorAll("article.model")];
  function choose(index) {
    articles.forEach((article, i) => { article.hidden = i !== index; });
    tip.hidden = true;
    draw();
  }
  if (articles.length > 1) {
    const field = html("fieldset", { class: "models" }, html("legend", {}, "Model"));
    DATA.models.forEach((model, i) => {
      const button = html("input", { type: "radio", name: "model", value: i, ...(i === DATA.chosen ? { checked: "" } : {}) });
      button.addEventListener("change", () => choose(i));
      field.append(html("label", {}, button, html("span", {}, model.name)));
    });
    document.querySelector("body > header").append(field);
  }

  const THEMES = ["system", "light", "dark"], theme = document.getElementById("theme");
  const remember = (name) => { try { return name ? localStorage.setItem("perfmodel-theme", name) : localStorage.getItem("perfmodel-theme"); } catch { return null; } };
  function setTheme(name) {
    document.documentElement.dataset.theme = name;
    theme.textContent = `Theme: ${name}`;
  }
  setTheme(THEMES.includes(remember()) ? remember() : "system");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
    setTheme(next);
    remember(next);
  });

  choose(DATA.chosen);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; tip.hidden = true; draw(); } });
  addEventListener("beforeprint", () => { articles.forEach((article) => { article.hidden = false; }); draw(); });
  addEventListener("afterprint", () => choose(articles.length > 1 ? [...document.querySelectorAll(".models input")].findIndex((i) => i.checked) : 0));
})();
