"""Recipes: models, the kernels that calibrate them, and other kernels that judge them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from perfmodel.basics import registry
from perfmodel.basics.errors import PerfmodelError, nearest
from perfmodel.device import Device
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.meaning import Meaning

TagFilter = Sequence[str]


def tag_filters(lines: str, sizes: Mapping[str, str]) -> list[TagFilter]:
    """Returns filters from text, one a line, in which names in braces stand for sizes."""
    return [line.split() for line in lines.format(**sizes).strip().splitlines()]


class Recipe(ABC):
    """A catalogue entry: model strings, a measurement set, an evaluation set, and what is compared.

    Attributes:
        models: model strings by name; the last one is the one that the verdict is about.
        meanings: what terms and parameters of the models stand for, by model and by name.
        ranked: whether the variants of an evaluation kernel compete for being the fastest at each size.
        baselines: whether a roofline and a random forest are fitted to the same measurements and compared.
        published: relative errors, geometric means as fractions, by the device that they were published for and by
            the label of a line of the table.
    """

    name: str
    summary: str
    output = "f_cl_wall_time"
    protocol = "unified"
    models: ClassVar[dict[str, str]]
    meanings: ClassVar[Mapping[str, Mapping[str, Meaning]]] = {}
    ranked: ClassVar[bool] = True
    baselines: ClassVar[bool] = True
    published: ClassVar[Mapping[str, Mapping[str, float]]] = {}

    @abstractmethod
    def measurement_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        """Returns filters of the kernels to calibrate with; `seconds_of` times one kernel, to choose sizes for the
        device.

        Kernels that several filters select are taken once.
        """

    @abstractmethod
    def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        """Returns filters of the kernels to predict, none of which may be in the measurement set."""

    def models_on(self, device: Device | None, notes: list[str]) -> Mapping[str, str]:
        """Returns the model strings for a device, which may name what its driver says of it; by default those of every
        device.

        Args:
            device: None where the output is no time of a device.
            notes: takes sentences on what this device has not.
        """
        return self.models

    def is_fitted_to(self, model: str, kernel: Kernel) -> bool:
        """Returns True if the model of this name is calibrated with a kernel of the measurement set; by default with
        all."""
        return True

    def fit_options(self, model: str, device: Device | None) -> Mapping[str, Any]:
        """Returns options of `Model.fit` for the model of this name, such as bounds that follow from what the device
        says."""
        return {}

    def label(self, kernel: Kernel) -> str:
        """Returns the line of the table that an evaluation kernel belongs to.

        By default its name and all its tags, of which tables show those that differ.
        """
        return f"{kernel.name} {kernel.variant}".strip()


def recipes() -> dict[str, Recipe]:
    """Returns every recipe found, perfmodel's own and those of installed packages, by name."""
    return {entry.name: entry for entry in registry.entries("models", Recipe)}


def recipe(name: str, beside: Iterable[str] = ()) -> Recipe:
    """Returns the recipe of this name.

    Args:
        beside: other names that could have been meant.

    Raises:
        PerfmodelError: if there is none, with the nearest names.
    """
    found = recipes()
    if name not in found:
        known = sorted((*found, *beside))
        raise PerfmodelError(f"no recipe {name!r}{nearest(name, known)} (known: {', '.join(known)})")
    return found[name]
