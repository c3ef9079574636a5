"""perfmodel: black-box performance models of OpenCL kernels.

Declare a model as a string over features and parameters, measure tag-filtered kernels, calibrate on a device, then
predict, explain and rank kernels that were never run. See the README for the ten-line example.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel.basics.version import VERSION

if TYPE_CHECKING:
    from perfmodel.basics.errors import PerfmodelError
    from perfmodel.collection.collection import ALL_GENERATORS, KernelCollection
    from perfmodel.collection.kernel_generator import KernelGenerator
    from perfmodel.device import devices
    from perfmodel.device.occupancy import occupancy
    from perfmodel.interception import intercept
    from perfmodel.kernels.emulation import emulate
    from perfmodel.kernels.kernel import Kernel
    from perfmodel.kernels.work_removal import isolate_accesses, remove_work
    from perfmodel.measuring.campaign import Campaign
    from perfmodel.measuring.store import Store
    from perfmodel.modelling.calibration import Calibration
    from perfmodel.modelling.feature_table import measure
    from perfmodel.modelling.model import Model
    from perfmodel.projection.device_choice import choose_device
    from perfmodel.projection.device_profile import DeviceProfile
    from perfmodel.tuning.pruning import prune
    from perfmodel.vocabulary.named_features import feature, register

__version__ = VERSION

# Each public name and the module that defines it; a name's module is imported when the name is first used, so that
# `import perfmodel` costs next to nothing.
_EXPORTS = {
    "ALL_GENERATORS": "collection.collection",
    "Calibration": "modelling.calibration",
    "Campaign": "measuring.campaign",
    "DeviceProfile": "projection.device_profile",
    "Kernel": "kernels.kernel",
    "KernelCollection": "collection.collection",
    "KernelGenerator": "collection.kernel_generator",
    "Model": "modelling.model",
    "PerfmodelError": "basics.errors",
    "Store": "measuring.store",
    "choose_device": "projection.device_choice",
    "devices": "device",
    "emulate": "kernels.emulation",
    "feature": "vocabulary.named_features",
    "intercept": "interception",
    "isolate_accesses": "kernels.work_removal",
    "measure": "modelling.feature_table",
    "occupancy": "device.occupancy",
    "prune": "tuning.pruning",
    "register": "vocabulary.named_features",
    "remove_work": "kernels.work_removal",
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
