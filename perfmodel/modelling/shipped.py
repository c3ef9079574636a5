"""The calibrations that come along: which files they are, and which models are the default of a device."""

from __future__ import annotations

import json
from pathlib import Path

from perfmodel.basics import registry


def shipped_files() -> list[Path]:
    """Returns the files of the calibrations that come along, sorted."""
    return sorted(file for folder in registry.folders("models") for file in folder.glob("*@*.json"))


def default_models() -> list[str]:
    """Returns the names of models of kernels of any kind; the first that a device has a calibration of is its
    default."""
    return [
        name for folder in registry.folders("models") for name in json.loads((folder / "defaults.json").read_text())
    ]


def shipped_kinds() -> dict[str, set[str]]:
    """Returns the kinds of devices, such as ``gpu``, that calibrations of each model come along for, by its name."""
    kinds: dict[str, set[str]] = {}
    for path in shipped_files():
        device = json.loads(path.read_text(encoding="utf-8"))["device"]
        kinds.setdefault(path.stem.partition("@")[0], set()).add(device["kind"])
    return kinds
