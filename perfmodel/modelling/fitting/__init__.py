"""Fits a model's parameters to measurements; what a prediction needs of it is what is declared of parameters only.

So the others are looked up when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from perfmodel.modelling.fitting.declared import Declared, declared

if TYPE_CHECKING:
    from perfmodel.modelling.fitting.least_squares import fit
    from perfmodel.modelling.fitting.result import FitResult, FitWarning, Undetermined

__all__ = ["Declared", "FitResult", "FitWarning", "Undetermined", "declared", "fit"]

_MODULES = {
    "FitResult": "result",
    "FitWarning": "result",
    "Undetermined": "result",
    "fit": "least_squares",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
