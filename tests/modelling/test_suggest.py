"""perfmodel suggest: known formulas behind simulated times are found again, by what they say of other kernels."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import perfmodel as pm
from perfmodel.basics.errors import FitError, PerfmodelError
from perfmodel.cli.command_line import main
from perfmodel.expression import parse
from perfmodel.modelling.calibration import Calibration
from perfmodel.modelling.suggestion import Suggestion, suggest
from perfmodel.modelling.suggestion.candidates import columns, distinct, offered
from perfmodel.modelling.suggestion.forms import parameter_name, resource, strings
from perfmodel.modelling.suggestion.report import as_file, as_text
from perfmodel.modelling.suggestion.search import MEMORY, ON_CHIP, OVERHEAD, Search, folds, typical_error
from perfmodel.vocabulary import named_features as vocabulary
from perfmodel.vocabulary.named_features import FeatureFamily
from tests.conftest import SimulatedTime

FILTERS = (
    "matmul_sq tiled_prefetch:* lsizes:16x16,32x8 n:512,2048",
    "global_copy loads:1,2,4 n:1048576,16777216",
    "transpose access:tiled,strided_reads n:1024,4096",
    "throughput op:madd,mul n:65536,262144 m:256,1024",
    "local_access n:65536,262144",
    "launch groups:16,4096,65536 lsize_0:64,256",
    "finite_difference fetch:none,halo n:1024,4096",
    "nbody prefetch:True n:4096,16384",
    "convolution fetch:none n:64,512",
    "scale_add stride:1,2 n:1048576,16777216",
    "overlap onchip:madd ratio:0,16,64 n:1048576",
)

Formula = Callable[[Callable[[str], float]], float]


def total(f: Callable[[str], float]) -> float:
    return overhead(f) + memory(f) + onchip(f)


def overlapped(f: Callable[[str], float]) -> float:
    return overhead(f) + max(memory(f), onchip(f))


COSTS = {
    "f_sync_kernel_launch": 5e-6,
    "f_thread_groups": 2e-9,
    "f_mem_bytes_global": 1e-12,
    "f_op_float32_madd": 4e-14,
    "f_mem_bytes_local": 1e-13,
}


def overhead(f: Callable[[str], float]) -> float:
    return sum(COSTS[name] * f(name) for name in ("f_sync_kernel_launch", "f_thread_groups"))


def memory(f: Callable[[str], float]) -> float:
    return COSTS["f_mem_bytes_global"] * f("f_mem_bytes_global")


def onchip(f: Callable[[str], float]) -> float:
    return sum(COSTS[name] * f(name) for name in ("f_op_float32_madd", "f_mem_bytes_local"))


def simulated(kernels: list[pm.Kernel], formula: Formula, noise: float = 0.02) -> list[float]:
    random = np.random.default_rng(5)
    return [SimulatedTime(formula).eval(k) * float(np.exp(noise * random.normal())) for k in kernels]


@pytest.fixture(scope="module")
def kernels(collection: pm.KernelCollection) -> list[pm.Kernel]:
    return [kernel for line in FILTERS for kernel in collection.generate_kernels(line.split())]


@pytest.fixture(scope="module")
def sums(collection: pm.KernelCollection, kernels: list[pm.Kernel]) -> Suggestion:
    """Returns what is suggested, evaluated on two kernels with absurd times."""
    others = collection.generate_kernels(["matmul_sq", "n:1024,1536"])
    absurd = [1e3 * time for time in simulated(others, total, noise=0.0)]
    return suggest(kernels, simulated(kernels, total), evaluation=(others, absurd))


@pytest.fixture(scope="module")
def overlaps(kernels: list[pm.Kernel]) -> Suggestion:
    return suggest(kernels, simulated(kernels, overlapped), terms=7)


def test_terms_behind_a_sum_are_found_among_many(sums: Suggestion) -> None:
    assert len(sums.candidates) > 40
    assert set(sums.model.features) == set(COSTS)
    assert sums.model.is_linear
    found = {name: sums.calibration.parameters[parameter_name(name)] for name in COSTS}
    assert found == pytest.approx(COSTS, rel=0.03)
    assert sums.chosen.error < 0.03
    assert [len(step.terms) for step in sums.path] == list(range(1, len(sums.path) + 1))
    assert set(sums.error_by_group) == {line.split()[0] for line in FILTERS}


def test_terms_that_overlap_are_found_where_the_device_overlaps(overlaps: Suggestion) -> None:
    assert "overlap(memory, onchip" in overlaps.chosen.last_line or "smooth_max" in overlaps.chosen.last_line
    assert overlaps.chosen.chosen_for == "overlap"
    assert set(overlaps.model.features) - {"f_mem_bytes_local_load"} == set(COSTS) - {"f_mem_bytes_local"}
    assert overlaps.chosen.error < 0.03
    assert min(form.error for form in overlaps.forms if form.chosen_for == "sum") > 0.1


def test_the_suggested_string_is_that_of_the_file_and_gives_the_same_predictions(
    kernels: list[pm.Kernel], overlaps: Suggestion
) -> None:
    text = as_file(overlaps, "perfmodel suggest --device 'Gerät'\nnext line")
    assert text.startswith("# perfmodel suggest --device 'Ger?t' next line\n# typical error ")
    assert set(parse(text).terms) == {"overhead", "memory", "onchip"}
    again = pm.Model("f_cl_wall_time", text).fit(_table(kernels, simulated(kernels, overlapped), overlaps.model))
    assert again.parameters == overlaps.calibration.parameters
    assert float(again.predict(kernels[0])) == float(overlaps.calibration.predict(kernels[0]))


def _table(kernels: list[pm.Kernel], times: list[float], model: pm.Model) -> pd.DataFrame:
    return pd.DataFrame({"f_cl_wall_time": times, **columns(kernels, model.features)}, index=list(map(repr, kernels)))


def test_the_report_shows_path_forms_groups_and_model(sums: Suggestion) -> None:
    text = as_text(sums)
    assert text.startswith(f"{len(sums.groups)} kernels in {len(FILTERS)} groups, each held out in its turn; ")
    for words in ("best sums", "+ f_sync_kernel_launch", "overhead + memory + onchip", "suggested model:", "s/launch"):
        assert words in text


def test_evaluation_kernels_are_predicted_and_decide_nothing(kernels: list[pm.Kernel], sums: Suggestion) -> None:
    alone = suggest(kernels, simulated(kernels, total), terms=2)
    assert [(step.terms, step.error) for step in alone.path] == [(step.terms, step.error) for step in sums.path[:2]]
    assert [round((row.measured_s or 0) / (row.predicted_s or 0), -2) for row in sums.evaluation] == [1000, 1000]
    assert "geometric mean of 2 errors: 99.9%" in as_text(sums)


class OfFamilies:
    """Bytes of the kernels of some families."""

    def __init__(self, *families: str) -> None:
        self.families = families

    def eval(self, knl: pm.Kernel) -> float:
        return pm.feature("f_mem_bytes_global").eval(knl) if knl.name in self.families else 0.0


@pytest.mark.parametrize(
    ("families", "is_chosen"), [(("transpose",), False), (("transpose", "scale_add", "global_copy"), True)]
)
def test_a_term_is_chosen_only_if_it_holds_for_other_families(
    families: tuple[str, ...], is_chosen: bool, kernels: list[pm.Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = OfFamilies(*families)
    monkeypatch.setitem(vocabulary._registered, "f_own_cost", own)
    times = [
        time + 0.15 * COSTS["f_mem_bytes_global"] * own.eval(kernel)
        for time, kernel in zip(simulated(kernels, total), kernels, strict=True)
    ]
    found = suggest(kernels, times, terms=6)
    assert ("f_own_cost" in found.candidates) == is_chosen
    assert ("f_own_cost" in found.model.features) == is_chosen
    assert set(found.model.features) >= set(COSTS)


def test_rows_with_flags_take_no_part(kernels: list[pm.Kernel], sums: Suggestion) -> None:
    times = simulated(kernels, total)
    flags: list[tuple[str, ...]] = [()] * len(kernels)
    wrong = pd.DataFrame({"f_cl_wall_time": [*times, 1.0, np.nan], "flags": [*flags, ("noisy",), ("failed: no",)]})
    more = [*kernels, kernels[0].at(n=768), kernels[0].at(n=1280)]
    found = suggest(more, wrong, terms=2)
    assert found.path[0].error == sums.path[0].error
    assert len(found.calibration.left_out) == 2


def test_too_few_kernels_beside_flagged_ones_are_told(kernels: list[pm.Kernel]) -> None:
    flags = [()] * 3 + [("near-launch-overhead",)] * (len(kernels) - 3)
    table = pd.DataFrame({"f_cl_wall_time": simulated(kernels, total), "flags": flags})
    with pytest.raises(FitError, match=f"beside {len(kernels) - 3} whose times are flagged, cannot show"):
        suggest(kernels, table)


def test_few_families_are_told_apart_by_their_variants(kernels: list[pm.Kernel]) -> None:
    few = [kernel for kernel in kernels if kernel.name in ("matmul_sq", "global_copy", "throughput")]
    found = suggest(few, simulated(few, total), terms=2)
    assert len(found.error_by_group) == len({(kernel.name, kernel.variant) for kernel in few}) > 3
    assert found.groups[0] == f"{few[0].name} {few[0].variant}"


@pytest.mark.parametrize(
    ("select", "message"),
    [
        (lambda ks: [], "there is no kernel to learn from"),
        (lambda ks: ks[:8], "8 kernels of family 'matmul_sq' only in 4 variants cannot show which terms hold"),
        (lambda ks: [ks[0].at(n=256 * i) for i in range(1, 20)], "19 kernels of family 'matmul_sq' only in 1 variants"),
        (lambda ks: ks[::7], "8 kernels of 7 families in 7 variants .* give at least 10, of at least 4 families"),
    ],
)
def test_too_few_kernels_are_one_sentence(
    select: Callable[[list[pm.Kernel]], list[pm.Kernel]], message: str, kernels: list[pm.Kernel]
) -> None:
    chosen = select(kernels)
    with pytest.raises(FitError, match=message) as raised:
        suggest(chosen, [1e-3] * len(chosen))
    assert "\n" not in str(raised.value)


def test_wrong_arguments_are_one_sentence(kernels: list[pm.Kernel]) -> None:
    times = [1e-3] * len(kernels)
    for arguments, options, message in (
        ((kernels, times[1:]), {}, f"there are {len(kernels)} kernels and {len(times) - 1} times; give one for each"),
        ((kernels, [np.nan, *times[1:]]), {}, "is nan where relative residuals need a positive finite time"),
        ((kernels, pd.DataFrame({"seconds": times})), {}, "the table has no column 'f_cl_wall_time'"),
        ((kernels, times), {"terms": 0}, "a model of 0 terms is none"),
        (
            (kernels, times),
            {"evaluation": (kernels[:1], times[:1])},
            "would be judged on Kernel.matmul_sq .* fitted to",
        ),
    ):
        with pytest.raises(PerfmodelError, match=message):
            suggest(*arguments, **options)


# --- candidates


def test_every_offered_name_is_a_feature_with_a_parameter_of_its_own(kernels: list[pm.Kernel]) -> None:
    found = offered(kernels)
    assert all(pm.feature(name) == feature for name, feature in found.items())
    assert len({parameter_name(name) for name in found}) == len(found)
    assert {"f_op", "f_op_float32_madd", "f_thread_groups", "f_mem_min_global", "f_mem_footprint_global"} <= set(found)
    assert "f_mem_access_global_float32_load_lstrides:{0:1}_afr:<=1" in found
    assert not any(name.startswith("f_cl_wall_time") for name in found)


def test_values_of_all_sizes_of_a_program_are_those_of_each_kernel(kernels: list[pm.Kernel]) -> None:
    names = ("f_op_float32_madd", "f_mem_footprint_global", "f_mem_access_global_asf:1")
    features = {name: pm.feature(name) for name in names}
    for name, column in columns(kernels, features).items():
        assert column.tolist() == [features[name].eval(kernel) for kernel in kernels]


class OnlyMatmul:
    """A feature that is not defined for other kernels."""

    def eval(self, knl: pm.Kernel) -> float:
        return 1.0 / (knl.name == "matmul_sq")


def test_columns_that_say_nothing_new_are_dropped(kernels: list[pm.Kernel]) -> None:
    assert np.isnan(columns(kernels[-1:], {"f_mine": OnlyMatmul(), "f_op": pm.feature("f_op")})["f_mine"]).all()
    measured, groups = np.array([1.0, 2.0, 4.0]), ["a", "b", "b"]
    found: Mapping[str, list[float]] = {
        "f_a": [1, 2, 3],
        "f_a_twice": [2, 4, 6],
        "f_nearly": [2, 4, 6 + 1e-6],
        "f_other": [2, 4, 6.001],
        "f_zero": [0, 0, 0],
        "f_of_one_group": [0, 1, 3],
        "f_undefined": [1, np.nan, 1],
    }
    kept = distinct({name: np.array(values, dtype=float) for name, values in found.items()}, measured, groups)
    assert list(kept) == ["f_a", "f_other"]


def test_a_family_offers_its_examples_unless_it_says_otherwise(kernels: list[pm.Kernel]) -> None:
    class Plain(FeatureFamily):
        prefix = ("plain",)
        summary = "a family that knows nothing of searches"
        examples = ("f_plain_one", "f_plain_two")

        def parse(self, name: object, words: object) -> OnlyMatmul:
            return OnlyMatmul()

    assert tuple(Plain().candidates(kernels[0].counts)) == Plain.examples


# --- search and forms, on plain numbers


def test_folds_hold_out_whole_groups() -> None:
    groups = [name for name, count in zip("abcdefg", (9, 1, 2, 3, 3, 1, 5), strict=True) for _ in range(count)]
    dealt = folds(groups, 3)
    assert np.sum(dealt, axis=0).tolist() == [1] * len(groups)
    for rows in dealt:
        assert {g for g, held in zip(groups, rows, strict=True) if held}.isdisjoint(
            g for g, held in zip(groups, rows, strict=True) if not held
        )
    assert sorted(int(rows.sum()) for rows in dealt) == [7, 8, 9]
    assert len(folds(groups, 40)) == 7


def test_the_typical_error_is_that_of_a_factor() -> None:
    assert typical_error(np.array([2.0, 0.5, 2.0])) == pytest.approx(1.0)
    assert typical_error(np.array([0.0, 1e9])) == pytest.approx(9.0)


@pytest.mark.parametrize("exponent", [1.0, 4.0])
def test_a_search_finds_the_terms_behind_random_columns(exponent: float) -> None:
    random = np.random.default_rng(3)
    work = np.exp(random.normal(size=(120, 30)) * 2)
    resources = [(OVERHEAD, MEMORY, ON_CHIP)[c % 3] for c in range(30)]
    memory, onchip = work[:, 1] + 0.5 * work[:, 4], 2 * work[:, 2]
    times = 0.1 * work[:, 0] + (memory + onchip if exponent == 1 else np.maximum(memory, onchip))
    times *= np.exp(0.01 * random.normal(size=120))
    search = Search(work / times[:, None], resources, folds([i % 12 for i in range(120)], 12), exponent)
    best = min(search.path(8), key=lambda found: found.penalized)
    assert best.terms == (0, 1, 2, 4)


@pytest.mark.parametrize(
    ("terms", "ends"),
    [
        ({"f_op_float32_madd": ON_CHIP}, ["onchip"]),
        ({"f_mem_bytes_global": MEMORY, "f_thread_groups": OVERHEAD}, ["overhead + memory"]),
        (
            {"f_mem_bytes_global": MEMORY, "f_op": ON_CHIP},
            ["memory + onchip", "smooth_max(memory, onchip, p_edge)", "overlap(memory, onchip, p_overlap)"],
        ),
    ],
)
def test_forms_are_those_that_the_terms_allow(terms: dict[str, int], ends: list[str]) -> None:
    found = strings(terms)
    assert [text.splitlines()[-1] for text in found] == ends
    for text in found:
        assert set(parse(text).features) == set(terms)
    assert {name: resource(name, pm.feature(name)) for name in terms} == terms


def test_parameters_that_would_have_one_name_are_told_apart() -> None:
    (text,) = strings({"f_x_afr:>1": OVERHEAD, "f_x_afr_gt1": OVERHEAD})
    assert len(parse(text).parameters) == 2
    assert parameter_name("f_mem_access_global_lstrides:{0:2..8}_asf:{1/>4}") == (
        "p_mem_access_global_lstrides_0_2_to_8_asf_1_of_gt4"
    )
    assert resource("f_mem_bytes_local", pm.feature("f_mem_bytes_local")) == ON_CHIP
    assert resource("f_sync_barrier_local", pm.feature("f_sync_barrier_local")) == OVERHEAD


# --- the command

SMALL = ["global_copy", "loads:1,2", "n:4096,65536"]
OTHERS = ["throughput n:4096 m:256", "matmul_sq tiled_prefetch:* n:64,128", "launch groups:4,64", "nbody n:256,512"]


@pytest.mark.timed
def test_the_command_writes_a_model_that_calibrate_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], unflagged: None
) -> None:
    out, store = tmp_path / "model.txt", ["--store", str(tmp_path / "times.sqlite"), "--device", "cpu"]
    measurements = [part for tags in OTHERS for part in ("--measurements", *tags.split())]
    common = [*store, "--protocol", "quick"]
    arguments = ["suggest", "--measurements", *SMALL, *measurements, "--evaluation", "transpose", "n:64", *common]
    assert main([*arguments, "--terms", "3", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "searching " in shown
    assert "suggested model:" in shown
    assert "geometric mean of 1 errors: " in shown
    assert f"written to {out}" in shown
    calibration = tmp_path / "calibration.json"
    all_tags = [part for tags in OTHERS for part in ("--tags", *tags.split())]
    assert main(["calibrate", f"@{out}", "--tags", *SMALL, *all_tags, *common, "--out", str(calibration)]) == 0
    assert Calibration.load(calibration).model.string.source == out.read_text()
    assert main(["suggest", "--measurements", *SMALL, *common, "--out", str(out)]) == 2
    assert re.search(r"perfmodel: \d kernels of family 'global_copy' only", capsys.readouterr().err)
