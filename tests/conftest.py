"""What the tests share: a device to run on, and a device-free stand-in for measured time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import perfmodel as pm
from perfmodel.device import Device, find_device


@pytest.fixture(scope="session")
def cpu() -> Device:
    """The embedded CPU device, which the lock installs."""
    return find_device("cpu")


class SimulatedTime:
    """A 'measured' time that follows from a formula over features, so that a fit has a known truth."""

    def __init__(self, formula: Callable[[Callable[[str], float]], float]) -> None:
        self.formula = formula

    def eval(self, knl: pm.Kernel) -> float:
        return self.formula(lambda name: pm.feature(name).eval(knl))


@pytest.fixture(scope="session")
def collection() -> pm.KernelCollection:
    return pm.KernelCollection(pm.ALL_GENERATORS)
