"""The page of the house names packages and modules that are there, and all rooms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOUSE = ROOT / "perfmodel"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROOMS = sorted(path.name for path in HOUSE.iterdir() if (path / "__init__.py").exists())


def pictured() -> dict[str, str]:
    """Returns what the picture says of each room."""
    found: dict[str, str] = {}
    room = ""
    for line in PAGE.split("```")[1].splitlines():
        if started := re.match(r"  (\w+) {2,}(.*)", line):
            room, found[started[1]] = started[1], started[2]
        elif line.startswith(" " * 10):
            found[room] += f" {line.strip()}"
    return found


def modules(folder: Path) -> set[str]:
    return {path.stem for path in folder.rglob("*.*")} | {path.name for path in folder.rglob("*") if path.is_dir()}


def followed() -> Iterator[tuple[Path, str]]:
    """Yields each module that the tables name, and the room that it is in: that of the one before, if it says none."""
    for cell in re.findall(r"^\| .* \| (?!where)([a-z_/,; ()]+) \|$", PAGE, re.M):
        room = HOUSE
        for named in re.findall(r"[a-z_/]+", cell):
            first = named.split("/")[0]
            room = next((place / first for place in (HOUSE, ROOT) if (place / first).is_dir()), room)
            yield room, named.split("/")[-1]


@pytest.mark.parametrize("room", ROOMS)
def test_the_picture_has_the_room_with_modules_that_are_there(room: str) -> None:
    words = set(re.findall(r"[a-z]+(?:_[a-z]+)+", pictured()[room]))
    assert words - modules(HOUSE / room) <= {*ROOMS}


def test_what_is_followed_through_goes_by_modules_that_are_there() -> None:
    found = list(followed())
    assert len(found) > 60
    for room, named in found:
        assert named in modules(room) | {room.name}, f"{room} has no {named}"
