"""Provides the tests of interception with a program to intercept."""

from __future__ import annotations

from typing import Any

import pytest

from perfmodel.device import Device
from tests.interception.program import Bench


@pytest.fixture(scope="package")
def bench(cpu: Device) -> Bench:
    return Bench(cpu)


@pytest.fixture
def cl(bench: Bench) -> Any:
    return bench.cl
