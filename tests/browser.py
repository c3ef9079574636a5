"""A headless Chromium, driven by its own protocol over two pipes: no port, no driver program, no package."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 60
# Chromium reads commands from file 3 and writes to 4, whatever our ends are called.
LAUNCH = (
    "import os, sys; a, b = int(sys.argv[1]), int(sys.argv[2]); os.dup2(a, 3); os.dup2(b, 4); "
    "os.execv(sys.argv[3], sys.argv[3:])"
)


def chromium() -> str | None:
    """Returns the program, where it is installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class LeftError(Exception):
    """The page was left for another one before it answered."""


class Page:
    """One tab of the browser."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers, self._left, self._number = commands, answers, b"", 0
        self.events: list[dict[str, Any]] = []
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Returns what Chromium answers to one command; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer and "navigated" in answer["error"]["message"]:
                    raise LeftError(answer["error"]["message"])
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])

    def open(self, place: Path | str) -> None:
        """Loads a file or an address anew, and forgets what happened before."""
        self.call("Page.navigate", url="about:blank")
        self.events.clear()
        self.call("Page.navigate", url=place if isinstance(place, str) else place.resolve().as_uri())
        end = time.monotonic() + PATIENCE_S
        while not self.evaluate("document.readyState === 'complete' && location.protocol !== 'about:'"):
            assert time.monotonic() < end, f"{place} does not load"
            time.sleep(0.02)

    def evaluate(self, expression: str) -> Any:
        """Returns the value of a JavaScript expression in the page, the next one where this is left meanwhile; an
        exception there fails the test."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
                break
            except LeftError:
                assert time.monotonic() < end, "no page stays"
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def emulate(self, width: int, height: int, theme: str = "light", script: bool = True, scale: float = 1) -> None:
        """Sets a screen of so many CSS pixels, and what the system prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.call("Emulation.setScriptExecutionDisabled", value=not script)

    def move_to(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def screenshot(self, file: Path, clip: Mapping[str, float] | None = None) -> None:
        """Writes a PNG of what is seen, or of a part of the page."""
        wanted: dict[str, Any] = {"clip": {**clip, "scale": 1}, "captureBeyondViewport": True} if clip else {}
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", **wanted)["data"]))

    def requested(self) -> list[str]:
        """Returns the addresses that the page asked for since it was opened."""
        asked = (e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent")
        return [address for address in asked if address != "about:blank"]

    def complaints(self) -> list[str]:
        """Returns exceptions, what was written to the console, and what the browser refused."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(event["params"]) for event in self.events if event["method"] in kinds]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._answers], [], [], PATIENCE_S)
            assert ready, "Chromium does not answer"
            self._left += (more := os.read(self._answers, 1 << 20))
            assert more, "Chromium has ended"
        line, _, self._left = self._left.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self.events.append(message)
        return message


@contextlib.contextmanager
def browser(program: str, profile: Path, options: Sequence[str] = ()) -> Iterator[Page]:
    """Yields a page of a browser with a profile of its own, which ends with the block."""
    (theirs_in, commands), (answers, theirs_out) = os.pipe(), os.pipe()
    for pipe in (theirs_in, theirs_out):
        os.set_inheritable(pipe, True)
    arguments = [
        *(program, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-sandbox"),
        *("--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars", *options),
    ]
    # Numbers above those that they become, so that neither overwrites the other.
    high = [os.dup(pipe) for pipe in (theirs_in, theirs_out)]
    while min(high) < 5:
        high = [os.dup(pipe) for pipe in high]
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCH, *map(str, high), *arguments],
        pass_fds=high,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for pipe in (theirs_in, theirs_out, *high):
        os.close(pipe)
    try:
        yield Page(commands, answers)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(commands)
        os.close(answers)
