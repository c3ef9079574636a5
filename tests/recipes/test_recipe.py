"""Recipes: the demonstration on the CPU device, its files, and the wall between calibration and evaluation."""

from __future__ import annotations

import json
import lzma
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import perfmodel as pm
from perfmodel import report
from perfmodel.basics.errors import FitError, KernelError, MeasurementError, PerfmodelError
from perfmodel.collection import kernel_generator
from perfmodel.device import Device
from perfmodel.kernels import remembered_program
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.loopy_program import LoopyProgram
from perfmodel.measuring.campaign import NOT_REACHED
from perfmodel.modelling.feature_table import MeasurementWarning, measure
from perfmodel.modelling.summary import summarize
from perfmodel.recipes import running
from perfmodel.recipes.outcome import Outcome
from perfmodel.recipes.recipe import Recipe, TagFilter, recipe
from perfmodel.vocabulary import named_features as vocabulary
from tests.conftest import SimulatedTime


class TinyRecipe(Recipe):
    name = "tiny"
    summary = "the demonstration's machinery on four small kernels"
    protocol = "quick"
    baselines = False
    models: ClassVar = {
        "one-term": "p_madd * f_op_float32_madd",
        "two-term": "p_l * f_sync_kernel_launch + p_m * f_op_float32_madd",
    }
    evaluation: Sequence[TagFilter] = (["matmul_sq", "tiled_prefetch:*", "n:96,192"],)

    def measurement_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        assert seconds_of(["matmul_sq", "n:64"]) > 0
        return [["matmul_sq", "tiled_prefetch:*", "n:64,128"]]

    def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        return self.evaluation


@pytest.fixture(scope="module")
def outcome(cpu: Device) -> Outcome:
    with pm.Store() as store:
        return running.run(TinyRecipe(), device=cpu, store=store, command="perfmodel tiny")


def test_every_summary_figure_follows_from_the_rows(outcome: Outcome, tmp_path: Path) -> None:
    report.write(outcome, tmp_path)
    saved = json.loads((tmp_path / "results.json").read_text())
    assert saved["summary"] == json.loads(json.dumps(summarize(outcome.rows, list(TinyRecipe.models))))
    for model in TinyRecipe.models:
        rows = [r for r in saved["rows"] if r["model"] == model and r["role"] == "evaluation"]
        assert len(rows) == 4
        for variant, errors in saved["summary"][model]["errors"].items():
            relative = [
                abs(r["predicted_s"] - r["measured_s"]) / r["measured_s"]
                for r in rows
                if f"{r['kernel']} {r['variant']}" == variant
            ]
            assert errors["geometric_mean"] == pytest.approx(np.exp(np.mean(np.log(relative))))
            assert errors["mean"] == pytest.approx(np.mean(relative))
            assert errors["maximum"] == pytest.approx(max(relative))


def test_all_files_are_written_and_whole(outcome: Outcome, tmp_path: Path) -> None:
    written = report.write(outcome, tmp_path / "new" / "folder")
    assert {path.name for path in written} == {
        *("results.json", "table.txt", "predicted.png", "report.html"),
        *("calibration-one-term.json", "calibration-two-term.json"),
    }
    assert (tmp_path / "new" / "folder" / "predicted.png").read_bytes().startswith(b"\x89PNG")
    loaded = pm.Calibration.load(tmp_path / "new" / "folder" / "calibration-two-term.json")
    assert loaded.parameters == outcome.calibrations["two-term"].parameters


def test_the_page_stands_alone(outcome: Outcome, tmp_path: Path) -> None:
    """No link and no source outside the file itself; what comes from outside is escaped."""
    report.write(outcome, tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert not re.search(r"<link|@import|url\(|\ssrc=", page)
    scripts = page.count("<script")
    for text in ("p_madd * f_op_float32_madd", outcome.device["driver"], "geometric mean", "perfmodel tiny"):
        assert text in page
    hostile = replace(outcome, command="<script>alert(1)</script>", device={**outcome.device, "name": "<b>x</b>"})
    report.write(hostile, tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert page.count("<script") == scripts
    assert "<script>alert" not in page
    assert "<b>x</b>" not in page


def test_tables_show_measured_predicted_and_error_side_by_side(outcome: Outcome) -> None:
    lines = report.comparison(outcome).splitlines()
    assert lines[0].split() == ["kernel", "size", "measured", "one-term", "error", "two-term", "error"]
    assert len(lines) == 2 + 4
    assert lines[2].startswith("tiled_prefetch=True  ")
    told = report.verdict(outcome)
    assert "one-term: predicts the same time for all variants" in told
    assert "measured fastest: tiled_prefetch=" in told


def test_a_recipe_cannot_judge_itself_on_what_it_was_fitted_to(cpu: Device) -> None:
    class Cheating(TinyRecipe):
        evaluation = (["matmul_sq", "n:96,128"],)

    with pm.Store() as store, pytest.raises(PerfmodelError, match=r"would judge itself on .*n=128"):
        running.run(Cheating(), device=cpu, store=store)


def test_unknown_recipes_are_named() -> None:
    with pytest.raises(PerfmodelError, match=r"no recipe 'dem'; did you mean 'demo'\?"):
        recipe("dem")


def test_the_folder_must_be_writable(outcome: Outcome, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PerfmodelError, match="cannot be made"):
        report.write(outcome, tmp_path / "file")


class Simulated(Recipe):
    """Two families on a device whose times are a formula, so that every figure has a known truth."""

    name = "simulated"
    summary = "two families on a simulated device"
    output = "f_simulated_recipe_seconds"
    models: ClassVar = {
        "madds": "p_l * f_sync_kernel_launch + p_m * f_op_float32_madd",
        "whole": "p_l * f_sync_kernel_launch + p_m * f_op_float32_madd + p_g * f_mem_access_global "
        "+ p_s * f_mem_access_local",
    }
    published: ClassVar = {
        "Old GPU": {"prefetch": 0.04, "no prefetch": 0.09},
        "Older GPU": {"prefetch": 0.5, "transposition": 0.02},
    }

    def measurement_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        return [
            ["matmul_sq", "tiled_prefetch:*", "n:64,128,256"],
            ["global_copy", "loads:1,2", "n:65536,262144"],
            # Again what the two above have, in one filter and in another.
            ["matmul_sq", "tiled_prefetch:True,False", "lsizes:16x16", "n:128,64,64"],
        ]

    def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        return [
            ["matmul_sq", "tiled_prefetch:*", "n:96,192"],
            ["transpose", "access:*", "n:512,1024"],
            ["matmul_sq", "tiled_prefetch:*", "n:96"],
        ]

    def label(self, kernel: Kernel) -> str:
        if kernel.name == "transpose":
            return "transposition"
        return "prefetch" if kernel.tags["tiled_prefetch"] == "True" else "no prefetch"


@pytest.fixture(scope="module", autouse=True)
def simulated_seconds() -> Iterator[None]:
    """Registers a feature for these tests only: elsewhere it would be a candidate of model searches."""
    vocabulary.register(
        Simulated.output,
        SimulatedTime(
            lambda count: (
                2e-6
                + 3e-12 * count("f_op_float32_madd")
                + 5e-11 * count("f_mem_access_global")
                + 1e-12 * count("f_mem_access_local")
            )
        ),
    )
    yield
    del vocabulary._registered["f_simulated_recipe_seconds"]


@pytest.fixture(scope="module")
def simulated() -> Outcome:
    with pm.Store() as store:
        return running.run(Simulated(), store=store, command="perfmodel simulated")


def test_duplicates_are_measured_and_fitted_once(simulated: Outcome) -> None:
    fitted = [(r.kernel, r.variant, *r.sizes.values()) for r in simulated.calibrations["whole"].rows]
    assert len(fitted) == len(set(fitted)) == 6 + 4
    judged = [(r.kernel, r.variant, *r.sizes.values()) for r in simulated.evaluation("whole")]
    assert (
        len(judged) == len(set(judged)) == 4 + 2 * len({r.variant for r in simulated.rows if r.kernel == "transpose"})
    )


def test_models_and_baselines_predict_the_same_kernels(simulated: Outcome) -> None:
    assert simulated.models == ["madds", "whole", "roofline", "random-forest"]
    rows = {
        model: [(r.kernel, r.variant, r.sizes, r.role, r.measured_s) for r in simulated.rows if r.model == model]
        for model in simulated.models
    }
    assert all(rows[model] == rows["madds"] for model in simulated.models)
    assert all(r.predicted_s is not None for r in simulated.rows)
    assert {r.label for r in simulated.evaluation("roofline")} == {"prefetch", "no prefetch", "transposition"}


def test_a_model_of_the_right_form_is_exact_and_its_geometric_mean_no_zero(simulated: Outcome) -> None:
    whole = simulated.summary["whole"]
    assert whole["over_all"]["maximum"] < 1e-9
    assert whole["over_all"]["geometric_mean"] == pytest.approx(1e-6)
    assert whole["over_all"]["within_30_percent"] == 1
    assert (whole["ranking"]["contests"], whole["ranking"]["right"], whole["ranking"]["worst_cost"]) == (4, 1, 1)
    # Of the transpositions' two sizes: where only two variants compete, there is nothing to correlate.
    assert whole["ranking"]["rank_correlation"] == pytest.approx({"median": 1, "mean": 1, "sizes": 2})
    assert simulated.summary["madds"]["over_all"]["geometric_mean"] > 0.1


def test_the_table_has_published_errors_ours_and_the_baselines(simulated: Outcome, tmp_path: Path) -> None:
    report.write(simulated, tmp_path)
    text = (tmp_path / "table.txt").read_text()
    lines = [re.split(r"  +", line) for line in text.splitlines()]
    start = lines.index(
        ["geometric mean error", "[Old GPU]", "[Older GPU]", "madds", "whole", "roofline", "random-forest"]
    )
    table = {line[0]: line[1:] for line in lines[start + 2 : start + 9]}
    assert list(table) == [
        *("prefetch", "no prefetch", "transposition"),
        *("all, geometric mean", "all, mean", "maximum", "part within ±30 %"),
    ]
    assert [line[:2] for line in table.values()] == [
        *(["4.0%", "50.0%"], ["9.0%", "-"], ["-", "2.0%"], ["6.0%", "10.0%"], *[["-", "-"]] * 3)
    ]
    assert table["all, mean"][2] == f"{simulated.summary['madds']['over_all']['mean']:.1%}"
    errors = simulated.summary["roofline"]["errors"]
    assert table["transposition"][4] == f"{errors['transposition']['geometric_mean']:.1%}"
    assert table["all, geometric mean"][2] == f"{simulated.summary['madds']['over_all']['geometric_mean']:.1%}"
    for shown in ("model whole:", "p_g", "s/access", "baseline roofline:", "distinct global bytes", "300 trees"):
        assert shown in text
    saved = json.loads((tmp_path / "results.json").read_text())
    assert saved["published"] == Simulated.published
    assert saved["summary"] == json.loads(json.dumps(summarize(simulated.rows, simulated.models)))
    page = (tmp_path / "report.html").read_text()
    for shown in ("[Older GPU]", "transposition", "random-forest", "named rightly", "distinct global bytes"):
        assert shown in page


def test_variants_of_one_label_are_told_apart(simulated: Outcome) -> None:
    lines = report.comparison(simulated).splitlines()
    assert lines[2].startswith("prefetch ")
    assert any(line.startswith("transposition: access=") for line in lines)


def test_kernels_too_large_for_the_device_are_noted_and_the_rest_goes_on(cpu: Device) -> None:
    """Kernels are refused before there is one that could be flagged, where sizes are chosen by measuring."""

    class TooLarge(TinyRecipe):
        evaluation = (["matmul_sq", "n:96"], ["vector_add", f"lsize_0:{2 * cpu.max_work_group_size}", "n:auto"])

    with pm.Store() as store:
        outcome = running.run(TooLarge(), device=cpu, store=store)
    assert len(outcome.evaluation("one-term")) == 1
    assert re.search(r"note: the kernels of vector_add .* were left out: .*work-item", report.text(outcome))

    class AllTooLarge(TinyRecipe):
        evaluation = (TooLarge.evaluation[1],)

    with pm.Store() as store, pytest.raises(PerfmodelError, match="'tiny' has no evaluation kernels for this device"):
        running.run(AllTooLarge(), device=cpu, store=store)


def test_unranked_recipes_have_no_contests() -> None:
    class Unranked(Simulated):
        ranked = False
        baselines = False
        published: ClassVar = {}

    with pm.Store() as store:
        outcome = running.run(Unranked(), store=store)
    assert outcome.models == ["madds", "whole"]
    assert outcome.summary["whole"]["fastest"] == []
    assert "fastest" not in report.text(outcome)


def test_a_missing_scikit_learn_is_told_and_nothing_else_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pm.Store() as store:
        outcome = running.run(Simulated(), store=store)
    assert outcome.models == ["madds", "whole", "roofline"]
    assert "pip install perfmodel[baselines]" in report.text(outcome)


def test_a_model_cannot_take_a_baselines_name() -> None:
    class Clashing(Simulated):
        models: ClassVar = {"roofline": "p_l * f_sync_kernel_launch"}

    with pm.Store() as store, pytest.raises(PerfmodelError, match=r"'simulated' has a model called 'roofline'"):
        running.run(Clashing(), store=store)


def test_predicting_is_timed_against_measuring(outcome: Outcome, tmp_path: Path) -> None:
    """The time of measuring is the sum of all trials of the kernels predicted."""
    assert outcome.cost is not None
    times = sum(r.measured_s or 0 for r in outcome.evaluation("one-term"))
    assert outcome.cost.measuring > 26 * times
    assert set(outcome.cost.predicting) == set(TinyRecipe.models)
    assert outcome.cost.counting > 0
    report.write(outcome, tmp_path)
    assert json.loads((tmp_path / "results.json").read_text())["cost_s"]["measuring"] == outcome.cost.measuring


SOME = [["launch", "groups:1,2,4"], ["vector_add", "n:256,512"], ["matmul_sq", "n:16,32,48"]]


def families_reached(cpu: Device, store: pm.Store, budget_s: float) -> list[str]:
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    kernels = [kernel for tags in SOME for kernel in collection.generate_kernels(tags)]
    model = pm.Model("f_cl_wall_time", "p_l * f_sync_kernel_launch")
    table = measure(kernels, model, device=cpu, store=store, protocol="quick", budget_s=budget_s)
    missing = table["f_cl_wall_time"].isna()
    assert [flags == (NOT_REACHED,) for flags in table["flags"]] == list(missing)
    return [kernel for kernel, is_missing in zip(table["kernel"], missing, strict=True) if not is_missing]


def test_a_budget_takes_families_in_turn_and_the_next_run_goes_on(cpu: Device) -> None:
    with pm.Store() as store:
        with pytest.raises(MeasurementError, match=NOT_REACHED):
            families_reached(cpu, store, 0)
        reached = [families_reached(cpu, store, 1e-9) for _ in range(3)]
        assert [len(kernels) for kernels in reached] == [1, 2, 3]
        assert len(set(reached[-1])) == 3
        assert families_reached(cpu, store, 0) == reached[-1]
        before = {m.key: m.trials for m in store}
        assert len(families_reached(cpu, store, 1000)) == 8
        after = {m.key: m.trials for m in store}
        assert {key: after[key] for key in before} == before
    with pm.Store() as store, pytest.raises(MeasurementError, match=r"budget of -1 s"):
        families_reached(cpu, store, -1)


def test_kernels_that_a_budget_does_not_reach_enter_neither_fit_nor_table(cpu: Device, tmp_path: Path) -> None:
    chosen = TinyRecipe()
    filters = [*chosen.measurement_tags(lambda _: 1.0), *chosen.evaluation_tags(lambda _: 1.0)]
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    kernels = [kernel for tags in filters for kernel in collection.generate_kernels(tags)]
    model = pm.Model("f_cl_wall_time", chosen.models["one-term"])
    with pm.Store() as store:
        # The one kernel that sizes are chosen by is too little for the model of two terms.
        with pytest.raises(FitError, match=r"7 of 8 kernels were left out, as the budget of 0 s"):
            running.run(chosen, device=cpu, store=store, budget_s=0)
        while len(store) < 6:
            measure(kernels, model, device=cpu, store=store, protocol="quick", budget_s=1e-9)
        outcome = running.run(chosen, device=cpu, store=store, budget_s=0)
    rows = [r for r in outcome.rows if r.model == "one-term"]
    assert len(rows) == 6
    assert all(r.measured_s for r in rows)
    assert len(outcome.calibrations["one-term"].rows) + len(outcome.evaluation("one-term")) == 6
    assert "note: 2 of 8 kernels were left out, as the budget of 0 s did not reach them" in report.text(outcome)
    report.write(outcome, tmp_path)
    assert "2 of 8 kernels" in (tmp_path / "report.html").read_text()


def test_kernels_that_a_store_lacks_and_can_not_take_are_left_out_with_the_remedy(cpu: Device, tmp_path: Path) -> None:
    plain, packed = tmp_path / "times.sqlite", tmp_path / "times.sqlite.xz"
    with pm.Store(plain) as store:
        running.run(TinyRecipe(), device=cpu, store=store)
        rows = list(store)
    some = tmp_path / "some.sqlite"
    with pm.Store(some) as store:
        store.put_many(rows[:-1])
    packed.write_bytes(lzma.compress(some.read_bytes()))
    with pm.Store(packed) as store, pytest.warns(MeasurementWarning):
        outcome = running.run(TinyRecipe(), device=cpu, store=store)
    (note,) = outcome.notes
    assert note.startswith(f"1 of 8 kernels were left out, as the store has no times of them on {cpu.key}, and store ")
    assert note.endswith("times.sqlite.xz is compressed and only read: unpack it by 'xz -dk' and give that file")


def test_the_demonstration_holds_out_sizes_beyond_twice_the_fit(cpu: Device) -> None:
    chosen = recipe("demo")
    for slow_or_fast in (lambda _: 1e-3, lambda _: 1e-5):
        sizes = []
        for filters in (chosen.measurement_tags(slow_or_fast), chosen.evaluation_tags(slow_or_fast)):
            (tag,) = [tag for tag in filters[0] if tag.startswith("n:")]
            sizes.append([int(n) for n in tag[2:].split(",")])
        fitted, predicted = sizes
        assert not set(fitted) & set(predicted)
        assert max(predicted) >= 2 * max(fitted)


def test_the_demonstration_runs_and_resumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, unflagged: None
) -> None:
    """The main job on the CPU device, at half of its sizes; its accuracy is a figure for benchmarks and docs."""
    from perfmodel.cli.command_line import main

    half = (range(128, 289, 32), (*range(144, 241, 32), *range(320, 577, 32)))
    monkeypatch.setattr("perfmodel.models.matmul_demo.SMALL", half)
    assert main(["demo", "--device", "cpu", "--protocol", "quick", "--out", str(tmp_path)]) == 0
    first = json.loads((tmp_path / "results.json").read_text())
    assert main(["demo", "--device", "cpu", "--protocol", "quick", "--out", str(tmp_path)]) == 0
    again = json.loads((tmp_path / "results.json").read_text())
    assert [row["measured_s"] for row in again["rows"]] == [row["measured_s"] for row in first["rows"]]
    assert "right at" in capsys.readouterr().out
    errors = first["summary"]["overlap"]["errors"]
    assert len(errors) == 2
    assert all(entry["count"] == 13 for entry in errors.values())


def test_a_calibration_alone_is_that_of_the_whole_recipe_and_needs_no_evaluation(simulated: Outcome) -> None:
    class Unjudged(Simulated):
        def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
            raise AssertionError("nothing is judged")

    with pm.Store() as store:
        found, notes = running.calibrate(Unjudged(), store=store)
    assert not notes
    assert {name: each.parameters for name, each in found.items()} == {
        name: each.parameters for name, each in simulated.calibrations.items()
    }
    assert {row.kernel for row in found["whole"].rows} == {"matmul_sq", "global_copy"}


def test_kernels_that_no_code_can_be_made_for_are_left_out_alone_with_their_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = vars(LoopyProgram)["content"].func

    def content(program: LoopyProgram) -> str:
        if "__local" in program.source:
            raise KernelError("Loopy cannot generate code for kernel 'tiles': no")
        return str(kept(program))

    monkeypatch.setattr(remembered_program, "CATALOGUE", "elsewhere.")
    monkeypatch.setattr(LoopyProgram, "content", property(content))
    kernel_generator._open.cache_clear()
    with pm.Store() as store:
        found, notes = running.calibrate(Simulated(), store=store)
    kernel_generator._open.cache_clear()
    variants = {row.variant for row in found["madds"].rows if row.kernel == "matmul_sq"}
    assert variants
    assert all("tiled_prefetch=False" in variant for variant in variants)
    assert len(notes) == 1
    assert "matmul_sq" in notes[0]
    assert "tiled_prefetch=True" in notes[0]
    assert notes[0].endswith("cannot generate code for kernel 'tiles': no")
