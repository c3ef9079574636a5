"""Provides the tests of measuring with a place for a store."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "measurements.sqlite"
