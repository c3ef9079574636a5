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
    from perfmodel.basics.errors import PerfmodelError, PerfmodelWarning
    from perfmodel.collection.collection import ALL_GENERATORS, KernelCollection
    from perfmodel.collection.kernel_generator import KernelGenerator
    from perfmodel.device import Device, devices
    from perfmodel.device.occupancy import occupancy
    from perfmodel.interception import intercept
    from perfmodel.kernels.emulation import emulate
    from perfmodel.kernels.kernel import Kernel
    from perfmodel.measuring.campaign import Campaign
    from perfmodel.measuring.protocol import Protocol
    from perfmodel.measuring.store import Store
    from perfmodel.modelling.calibration import Calibration, Model
    from perfmodel.modelling.estimator import ModelRegressor
    from perfmodel.modelling.evaluation import evaluate
    from perfmodel.modelling.feature_table import measure
    from perfmodel.modelling.meaning import Meaning
    from perfmodel.modelling.suggestion import suggest
    from perfmodel.projection.device_choice import choose_device
    from perfmodel.projection.device_profile import DeviceProfile
    from perfmodel.recipes.few_kernels import calibrate
    from perfmodel.recipes.recipe import Recipe
    from perfmodel.tuning.improving import improve
    from perfmodel.tuning.pruning import prune
    from perfmodel.tuning.tuner import tune
    from perfmodel.vocabulary.named_features import Feature, feature, register

__version__ = VERSION

# Each public name and the module that defines it; a name's module is imported when the name is first used, so that
# `import perfmodel` costs next to nothing.
_EXPORTS = {
    "ALL_GENERATORS": "collection.collection",
    "Calibration": "modelling.calibration",
    "Campaign": "measuring.campaign",
    "Device": "device",
    "DeviceProfile": "projection.device_profile",
    "Feature": "vocabulary.named_features",
    "Kernel": "kernels.kernel",
    "KernelCollection": "collection.collection",
    "KernelGenerator": "collection.kernel_generator",
    "Meaning": "modelling.meaning",
    "Model": "modelling.calibration",
    "ModelRegressor": "modelling.estimator",
    "PerfmodelError": "basics.errors",
    "PerfmodelWarning": "basics.errors",
    "Protocol": "measuring.protocol",
    "Recipe": "recipes.recipe",
    "Store": "measuring.store",
    "calibrate": "recipes.few_kernels",
    "choose_device": "projection.device_choice",
    "devices": "device",
    "emulate": "kernels.emulation",
    "evaluate": "modelling.evaluation",
    "feature": "vocabulary.named_features",
    "improve": "tuning.improving",
    "intercept": "interception",
    "measure": "modelling.feature_table",
    "occupancy": "device.occupancy",
    "prune": "tuning.pruning",
    "register": "vocabulary.named_features",
    "suggest": "modelling.suggestion",
    "tune": "tuning.tuner",
}

__all__ = [
    "ALL_GENERATORS",
    "Calibration",
    "Campaign",
    "Device",
    "DeviceProfile",
    "Feature",
    "Kernel",
    "KernelCollection",
    "KernelGenerator",
    "Meaning",
    "Model",
    "ModelRegressor",
    "PerfmodelError",
    "PerfmodelWarning",
    "Protocol",
    "Recipe",
    "Store",
    "calibrate",
    "choose_device",
    "devices",
    "emulate",
    "evaluate",
    "feature",
    "improve",
    "intercept",
    "measure",
    "occupancy",
    "prune",
    "register",
    "suggest",
    "tune",
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
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
