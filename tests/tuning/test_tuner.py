"""Tests the search that learns from measured times: `perfmodel.tune`."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import PerfmodelError
from perfmodel.tuning.pruning import Configuration
from perfmodel.tuning.tuner import Tuner

Config = dict[str, Any]
CONFIGS: list[Config] = [
    {"group": group, "work": work, "mode": mode}
    for group, work, mode in itertools.product((32, 64, 128, 256, 512), (1, 2, 3, 4, 6, 8), ("rows", "tiles"))
]


def guess(config: Config) -> float:
    return float(1e-3 * (1 + abs(math.log2(config["group"] / 256)) / 4) * (1 + 1 / config["work"]))


def truth(config: Config) -> float:
    """Returns a time on a device that is slower, likes small groups, and has no room for much work."""
    spilled = 1.0 + max(0, config["work"] - 3) / 4
    tiles = 0.8 if config["mode"] == "tiles" else 1.0
    return float(2.7 * guess(config) * spilled * tiles * (config["group"] / 256) ** 0.4)


def tuner(**limits: Any) -> Tuner[Config]:
    return Tuner([Configuration(config, guess(config)) for config in CONFIGS], **limits)


def errors(found: Tuner[Config]) -> list[float]:
    """Returns how far what is expected of configurations that were not measured is off."""
    known = [config for config, _ in found.measured]
    return [abs(math.log(each.seconds / truth(each.config))) for each in found.predicted if each.config not in known]


def search(found: Tuner[Config], at_once: int, most: int) -> Tuner[Config]:
    while not found.is_done and len(found.measured) < most:
        for config in found.ask(at_once):
            found.tell(config, truth(config))
    return found


def test_predictions_are_followed_as_far_as_times_rank_like_them() -> None:
    ranked = sorted(CONFIGS, key=guess)
    followed, doubted = tuner(), tuner()
    for _ in range(16):
        for found, measured in ((followed, guess), (doubted, lambda config: 1e-6 / guess(config))):
            (config,) = found.ask()
            found.tell(config, measured(config))
    places = [{ranked.index(config) for config, _ in found.measured} for found in (followed, doubted)]
    assert places[0] >= set(range(8))
    assert not places[1] >= set(range(8))


@pytest.mark.parametrize("at_once", [1, 4])
def test_it_finds_what_the_predictions_hide(at_once: int) -> None:
    best = min(map(truth, CONFIGS))
    assert truth(min(CONFIGS, key=guess)) > 1.5 * best
    found = search(tuner(), at_once, 24)
    assert found.best is not None
    assert found.best[1] <= 1.03 * best
    assert len(found.measured) < len(CONFIGS) / 2


def test_each_time_makes_the_others_better_known() -> None:
    found = tuner()
    before = errors(found)
    found.tell(CONFIGS[36], truth(CONFIGS[36]))
    assert np.mean(errors(found)) < np.mean(before)
    for place in (3, 16, 25, 33, 40, 46, 51, 58):
        found.tell(CONFIGS[place], truth(CONFIGS[place]))
    assert np.median(errors(found)) < 0.6 * np.median(before)


def test_a_search_ends_when_little_is_likely_to_be_left() -> None:
    patient, hasty = search(tuner(better=0.01, doubt=0.01), 1, 60), search(tuner(better=0.2, doubt=0.3), 1, 60)
    assert len(hasty.measured) < len(patient.measured) < len(CONFIGS)
    assert hasty.is_done
    assert hasty.probability_of_better < 0.3
    assert tuner().probability_of_better == 1
    everything = tuner()
    for config in CONFIGS:
        everything.tell(config, truth(config))
    assert everything.is_done
    assert everything.probability_of_better == 0
    assert not everything.ask(3)


def test_a_configuration_is_asked_for_once() -> None:
    found = tuner()
    asked = found.ask(5) + found.ask(5)
    assert len({str(config) for config in asked}) == 10
    assert asked[0] == min(CONFIGS, key=guess)


def test_failures_are_known_but_tell_nothing_of_others() -> None:
    found = tuner()
    (first,) = found.ask()
    found.tell(first, None)
    assert found.best is None
    assert found.measured == [(first, math.inf)]
    assert not found.is_done
    found.tell(CONFIGS[0], truth(CONFIGS[0]))
    found.tell(CONFIGS[1], math.nan)
    assert found.best == (CONFIGS[0], truth(CONFIGS[0]))
    assert first not in found.ask(len(CONFIGS))


def test_what_needs_no_measurement_says_why() -> None:
    found = search(tuner(), 1, 12)
    pruned = [each for each in found.predicted if each.pruned]
    assert found.best is not None
    assert pruned
    assert all("times the best" in each.pruned for each in pruned)
    assert min(truth(each.config) for each in pruned) > 0.97 * found.best[1]
    assert not {str(each.config) for each in pruned} & {str(config) for config, _ in found.measured}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: tuner(doubt=0), "parts of one"),
        (lambda: tuner(better=1), "parts of one"),
        (lambda: Tuner([]), "the list is empty"),
        (lambda: Tuner([Configuration("a", math.nan, unpredicted="it is too large")]), "it is too large"),
        (lambda: tuner().ask(0), "give 1 or more"),
        (lambda: tuner().ask(1.5), "give 1 or more"),  # type: ignore[arg-type]
        (lambda: tuner().ask("4"), "give 1 or more"),  # type: ignore[arg-type]
        (lambda: tuner().tell(CONFIGS[0], 0), "is no time"),
        (lambda: tuner().tell(CONFIGS[0], "fast"), "'fast' s is no time"),  # type: ignore[arg-type]
        (lambda: tuner().tell(CONFIGS[0], [1e-5]), "give seconds, or None"),  # type: ignore[arg-type]
        (lambda: pm.tune(CONFIGS, print, "h200"), "'h200' is no calibration"),  # type: ignore[arg-type]
        (lambda: pm.tune(CONFIGS, 3, pm.Calibration.shipped(device="H200")), "kernel=3 is no function"),  # type: ignore[arg-type]
        (lambda: tuner().tell({"group": 7}, 1.0), "none of the configurations"),
    ],
)
def test_what_is_wrong_is_said(wrong: Any, says: str) -> None:
    with pytest.raises(PerfmodelError, match=says):
        wrong()


SOURCE = """__kernel void scaled(__global float *out, __global const float *in, __local float *tile)
{
    tile[get_local_id(0)] = in[get_global_id(0)];
    out[get_global_id(0)] = 2.0f * tile[get_local_id(0)];
}"""


def test_configurations_of_a_kernel_are_predicted_and_checked() -> None:
    calibration = pm.Calibration.shipped(device="H200")
    n = 2**20

    def kernel(config: tuple[int, int]) -> pm.Kernel:
        group, local = config
        return pm.Kernel.from_opencl(SOURCE, "scaled", n, group, {"out": n, "in": n, "tile": local})

    found = pm.tune([(64, 256), (256, 1024), (2048, 8192), (128, 65536), (96, 512)], kernel, calibration)
    small, usual, large, greedy, uneven = found.predicted
    assert usual.seconds == pytest.approx(float(calibration.predict(kernel((256, 1024)).as_compiled())))
    assert small.seconds > usual.seconds
    assert "2048 work-items, and the device takes 1024" in large.pruned
    assert "65536 bytes of local memory, and there are 49152" in greedy.pruned
    assert "whole number of work-groups" in uneven.pruned
    assert found.ask(9) == [(256, 1024), (64, 256)]
