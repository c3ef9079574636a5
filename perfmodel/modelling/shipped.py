"""The calibrations that come along: which files they are, and which models are the default of a device."""

from __future__ import annotations

import json
from pathlib import Path

from perfmodel.basics import registry
from perfmodel.basics.errors import DeviceError
from perfmodel.device import find_device


def shipped_files() -> list[Path]:
    """Returns the files of the calibrations that come along, sorted."""
    return sorted(file for folder in registry.folders("models") for file in folder.glob("*@*.json"))


def default_models() -> list[str]:
    """Returns the names of models of kernels of any kind; the first that a device has a calibration of is its
    default."""
    return [
        name for folder in registry.folders("models") for name in json.loads((folder / "defaults.json").read_text())
    ]


def calibrated_by(model: str, device: str) -> str:
    """Returns what ``perfmodel reproduce`` calibrates a device with: the model, or the default of its kind where none
    is named, and the device if it is here."""
    defaults = default_models()
    try:
        here = find_device(device)
    except DeviceError:
        return f"{model or defaults[0]} --calibrate-only"
    kinds = {file.stem.partition("@")[0]: json.loads(file.read_text())["device"]["kind"] for file in shipped_files()}
    known = next((name for name in defaults if kinds.get(name) == here.kind), defaults[0])
    return f"{model or known} --device {here.key} --calibrate-only"
