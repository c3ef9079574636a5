"""perfmodel: black-box performance models of OpenCL kernels.

Declare a model as a string over features and parameters, measure tag-filtered kernels, calibrate on a device, then
predict, explain and rank kernels that were never run. See the README for the ten-line example.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perfmodel.calibration import Calibration
    from perfmodel.campaign import Campaign
    from perfmodel.collection import ALL_GENERATORS, KernelCollection
    from perfmodel.device import devices
    from perfmodel.device_choice import choose_device
    from perfmodel.device_profile import DeviceProfile
    from perfmodel.errors import PerfmodelError
    from perfmodel.feature_table import measure
    from perfmodel.interception import intercept
    from perfmodel.kernel import Kernel
    from perfmodel.kernel_generator import KernelGenerator
    from perfmodel.model import Model
    from perfmodel.profile import emulate
    from perfmodel.pruning import prune
    from perfmodel.residency import occupancy
    from perfmodel.store import Store
    from perfmodel.vocabulary import feature, register
    from perfmodel.work_removal import isolate_accesses, remove_work

__version__ = "0.1.0"

# Each public name and the module that defines it; a name's module is imported when the name is first used, so that
# `import perfmodel` costs next to nothing.
_EXPORTS = {
    "ALL_GENERATORS": "collection",
    "Calibration": "calibration",
    "Campaign": "campaign",
    "DeviceProfile": "device_profile",
    "Kernel": "kernel",
    "KernelCollection": "collection",
    "KernelGenerator": "kernel_generator",
    "Model": "model",
    "PerfmodelError": "errors",
    "Store": "store",
    "choose_device": "device_choice",
    "devices": "device",
    "emulate": "profile",
    "feature": "vocabulary",
    "intercept": "interception",
    "isolate_accesses": "work_removal",
    "measure": "feature_table",
    "occupancy": "residency",
    "prune": "pruning",
    "register": "vocabulary",
    "remove_work": "work_removal",
}

__all__ = [
    "ALL_GENERATORS",
    "Calibration",
    "Campaign",
    "DeviceProfile",
    "Kernel",
    "KernelCollection",
    "KernelGenerator",
    "Model",
    "PerfmodelError",
    "Store",
    "choose_device",
    "devices",
    "emulate",
    "feature",
    "intercept",
    "isolate_accesses",
    "measure",
    "occupancy",
    "prune",
    "register",
    "remove_work",
]

# In a checkout that is not installed, the catalogues lie beside this folder and not in it.
_root = Path(__file__).resolve().parent.parent
if (_root / "pyproject.toml").is_file() and (_root / "generators").is_dir():
    __path__.append(str(_root))


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'perfmodel' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"perfmodel.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS})
