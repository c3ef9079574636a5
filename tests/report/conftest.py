"""Results that tests of reports begin with."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from perfmodel.report.reported import ReportedModel, reported
from perfmodel.report.sample import ReportedSample, sample

RESULTS = Path(__file__).parents[2] / "docs" / "results"
H200, EPYC = RESULTS / "demo-nvidia-h200-e38dd1", RESULTS / "demo-amd-epyc-eb6565"
HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def overlap() -> ReportedModel:
    return next(model for model in reported([str(H200)]) if model.name == "overlap")


@pytest.fixture(scope="module")
def sampled(overlap: ReportedModel) -> ReportedSample:
    return sample(overlap.rows, budget_s=math.inf)
