"""Rankings of variants that compete, and errors over all of them, are as computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perfmodel.modelling.rows import EVALUATION, Row
from perfmodel.modelling.summary import summarize


def row(variant: str, n: int, measured: float | None, predicted: float | None, **changes: Any) -> Row:
    row_of = {"model": "m", "kernel": "k", "label": variant, "role": EVALUATION, "predicted_std_s": None, **changes}
    return Row(variant=variant, sizes={"n": n}, measured_s=measured, predicted_s=predicted, **row_of)


def test_rankings_against_values_computed_by_hand() -> None:
    rows = [
        *(row("a", 1, 1.0, 1.1), row("b", 1, 2.0, 1.9), row("c", 1, 3.0, 2.9)),
        # b is chosen, which takes 1.25 times what c does.
        *(row("a", 2, 9.0, 9.0), row("b", 2, 5.0, 4.0), row("c", 2, 4.0, 4.5)),
        # A tie for the fastest: nothing is named, and the worst of the two is what it may cost.
        *(row("a", 3, 10.0, 11.0), row("b", 3, 15.0, 11.0), row("c", 3, 20.0, 12.0)),
        # No contest: only one has both times.
        *(row("a", 4, 1.0, None), row("b", 4, None, 1.0), row("c", 4, 1.0, 1.0)),
        # Another kernel at the same size does not compete.
        row("a", 1, 0.1, 0.1, kernel="other"),
    ]
    found = summarize(rows, ["m"])["m"]
    assert [c["predicted"] for c in found["fastest"]] == ["a", "b", None]
    assert [c["measured"] for c in found["fastest"]] == ["a", "c", "a"]
    assert [c["right"] for c in found["fastest"]] == [True, False, False]
    assert [c["cost_of_choice"] for c in found["fastest"]] == [1.0, 1.25, 1.5]
    assert [(c["variants"], c["tied"]) for c in found["fastest"]] == [(3, 1), (3, 1), (3, 2)]
    ranking = found["ranking"]
    assert (ranking["contests"], ranking["worst_cost"]) == (3, 1.5)
    assert ranking["right"] == pytest.approx(1 / 3)
    # At each size by itself: ranks 1 2 3 | 3 2 1 | 1 2 3 measured against 1 2 3 | 3 1 2 | 1.5 1.5 3 predicted.
    correlations = [1, 0.5, np.corrcoef([1, 2, 3], [1.5, 1.5, 3])[0, 1]]
    median, mean = float(np.median(correlations)), float(np.mean(correlations))
    assert ranking["rank_correlation"] == {"median": pytest.approx(median), "mean": pytest.approx(mean), "sizes": 3}
    assert (median, mean) != (1, 1)


def test_sizes_that_are_ranked_rightly_among_each_other_are_no_rank_correlation() -> None:
    """Each size in the wrong order, and larger sizes longer: pooled, this was a correlation of 0.9."""
    times = [(n, 10.0**n * (1 + v / 10), 10.0**n * (1.2 - v / 10), "abc"[v]) for n in range(4) for v in range(3)]
    found = summarize([row(name, n, measured, predicted) for n, measured, predicted, name in times], ["m"])
    assert found["m"]["ranking"]["rank_correlation"] == {"median": -1, "mean": -1, "sizes": 4}


def test_errors_over_all_labels_against_values_computed_by_hand() -> None:
    rows = [row("a", 1, 1.0, 1.0), row("a", 2, 1.0, 1.01), row("b", 1, 2.0, 3.0), row("b", 2, None, 1.0)]
    found = summarize(rows, ["m"], ranked=False)["m"]
    assert found["over_all"] == {
        "geometric_mean": pytest.approx((1e-6 * 0.01 * 0.5) ** (1 / 3)),
        "mean": pytest.approx(0.17),
        "maximum": pytest.approx(0.5),
        "count": 3,
        "within_30_percent": pytest.approx(2 / 3),
    }
    assert found["errors"]["a"]["geometric_mean"] == pytest.approx(1e-4)
    assert found["errors"]["b"]["count"] == 1
    assert found["ranking"] is None
    constant = summarize([row("a", 1, 1.0, 1.0), row("b", 1, 2.0, 1.0)], ["m"])["m"]
    assert constant["ranking"]["rank_correlation"] is None
    assert summarize([row("a", 1, None, 1.0)], ["m"])["m"]["over_all"] is None
