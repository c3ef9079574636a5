"""The kernels beside this file, each with the launches that its first lines give."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).parent / "kernels"


@dataclass(frozen=True)
class Launch:
    """One way to run a kernel of a file; `arguments` are dicts as in the file."""

    file: Path
    kernel: str
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    arguments: tuple[dict[str, Any], ...]
    options: tuple[str, ...]
    folders: tuple[Path, ...]
    is_exact: bool
    needs: str
    is_optimized: bool

    @property
    def source(self) -> str:
        return self.file.read_text()

    def __str__(self) -> str:
        return f"{self.file.stem}-{self.kernel}"


def files() -> list[Path]:
    return sorted(KERNELS.glob("*.cl"))


def launches() -> list[Launch]:
    return [launch for file in files() for launch in launches_of(file)]


def launches_of(file: Path) -> list[Launch]:
    lines = file.read_text().splitlines()
    return [_launch(file, json.loads(line[len("// launch:") :])) for line in lines if line.startswith("// launch:")]


def _launch(file: Path, given: dict[str, Any]) -> Launch:
    return Launch(
        file=file,
        kernel=given["kernel"],
        global_size=tuple(given["global"]),
        local_size=tuple(given["local"]),
        arguments=tuple(given["args"]),
        options=tuple(given.get("options", ())),
        folders=tuple(KERNELS / folder for folder in given.get("folders", ())),
        is_exact=given.get("exact", False),
        needs=given.get("needs", ""),
        is_optimized=given.get("optimized", False),
    )
