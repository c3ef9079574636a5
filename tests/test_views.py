"""Tests of what a terminal and a notebook show of an object: one line that says what it is, and small tables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.brief import WIDEST, number_of, shortened
from perfmodel.expression import parse
from perfmodel.measuring.campaign import Plan
from perfmodel.measuring.store import Failure
from perfmodel.modelling.fitting import fit
from perfmodel.modelling.prediction import predict
from perfmodel.recipes import recipe, running

DEMO = Path(__file__).parent.parent / "docs" / "results" / "demo-nvidia-h200-e38dd1" / "measurements.sqlite.xz"
MULTILINE = """
# what it costs to launch
launch = p_launch * f_sync_kernel_launch
launch + p_madd * f_op_float32_madd
"""


@pytest.fixture(scope="module")
def store() -> Iterator[pm.Store]:
    with pm.Store(DEMO) as opened:
        yield opened


@pytest.fixture(scope="module")
def kernel() -> pm.Kernel:
    return pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "tiled_prefetch:True", "n:1024"])[0]


@pytest.fixture(scope="module")
def calibration() -> pm.Calibration:
    return pm.Calibration.shipped("unified-plus", device="H200")


@pytest.fixture(scope="module")
def shown(store: pm.Store, kernel: pm.Kernel, calibration: pm.Calibration) -> dict[str, Any]:
    device = next(device for device in store.devices() if device.key.startswith("nvidia"))
    outcome = running.run(recipe.recipe("demo"), device=device.key, store=store, command="perfmodel demo")
    fitted = next(iter(outcome.calibrations.values()))
    measurement = next(iter(store))
    described = {
        name: getattr(measurement, name) for name in Failure.__dataclass_fields__ if hasattr(measurement, name)
    }
    x = np.arange(1.0, 20)
    return {
        "outcome": outcome,
        "calibration": calibration,
        "fitted calibration": fitted,
        "row": fitted.rows[0],
        "errors left out": calibration.held_out,
        "prediction": predict(calibration, kernel, {}),
        "predictions": predict(calibration, kernel, {"n": np.array([512, 1024])}),
        "explanation": calibration.explain(kernel),
        "ranking": calibration.rank([kernel, kernel.at(n=512)]),
        "comparison": calibration.compare(kernel, kernel.at(n=512)),
        "evaluation": pm.evaluate(calibration, [kernel.at(n=n) for n in (1024, 2048)], device=device, store=store),
        "kernel": kernel,
        "kernel of many tags": pm.Kernel(kernel.program, {**kernel.tags, "note": "long " * 40}, None, n=256),
        "counts": kernel.counts,
        "access": kernel.counts.accesses[0],
        "access of unknown number": kernel.at(n=64).as_emulated().counts.accesses[-1],
        "counts of compiled": kernel.as_compiled().counts,
        "program": kernel.program,
        "OpenCL": kernel.as_opencl().program,
        "compiled": kernel.as_compiled().program,
        "emulated": kernel.at(n=64).as_emulated().program,
        "with transfers": kernel.with_transfers().program,
        "profile": pm.emulate(kernel.at(n=64)),
        "PTX profile": pm.emulate(pm.Kernel.from_cuda("__global__ void k(float *x) { *x = 1; }", "k", 1, 32, {"x": 1})),
        "advice": calibration.advise(kernel),
        "choice": pm.choose_device(kernel.at(n=64), ["H200", "C2050"]),
        "device profile": pm.DeviceProfile.shipped("H200"),
        "occupancy": pm.occupancy("9.0", block=256, registers=32),
        "pruned": pm.prune([{"n": 1}, {"n": 2}], lambda config: 1e-3 * config["n"], top_k=1),
        "model": pm.Model("f_cl_wall_time", MULTILINE),
        "long model": calibration.model,
        "fit": fit(parse("p_a * f_x + p_b"), {"f_x": x}, 2 * x + 1),
        "feature": pm.feature("f_mem_access_global_float32_load_lstrides:{0:1}"),
        "output": pm.feature("f_cl_wall_time"),
        "collection": pm.KernelCollection(pm.ALL_GENERATORS),
        "generator": pm.ALL_GENERATORS[0],
        "store": store,
        "measurement": measurement,
        "failure": Failure(**described, reason="the driver said " + "no " * 80),
        "campaign": pm.Campaign([kernel], ["cpu"]),
        "plan": Plan([]),
        "log": pm.intercept(),
    }


def test_everything_says_what_it_is_in_one_line(shown: dict[str, Any]) -> None:
    for name, found in shown.items():
        text = repr(found)
        assert len(text) <= WIDEST, (name, text)
        assert "\n" not in text, name
        assert "\\n" not in text, name
        assert text.startswith(type(found).__name__), (name, text)
        assert not text.endswith("()"), name


def test_what_is_said(shown: dict[str, Any]) -> None:
    assert repr(shown["calibration"]) == "Calibration(f_cl_wall_time on NVIDIA H200, 34 parameters)"
    assert repr(shown["model"]) == (
        "Model(f_cl_wall_time, 2 features, 2 parameters, launch + p_madd * f_op_float32_madd)"
    )
    assert repr(pm.Model("f_cl_wall_time", "p_a * f_op")) == "Model(f_cl_wall_time, p_a * f_op)"
    assert str(shown["model"]).splitlines()[0] == "f_cl_wall_time by"
    assert str(shown["model"]).splitlines()[2:] == MULTILINE.strip().splitlines()[1:]
    assert repr(shown["fit"]) == "FitResult(linear, 2 parameters, 19 measurements, mean error 0.00%)"
    assert repr(shown["collection"]).startswith(f"KernelCollection({len(pm.ALL_GENERATORS)} generators, access_classes")


def test_a_closed_store_still_says_what_it_is(tmp_path: Path) -> None:
    with pm.Store(tmp_path / "times.sqlite") as opened:
        assert repr(opened).endswith("times.sqlite, 0 measurements)")
    assert repr(opened).endswith("closed, or damaged)")
    with pm.Store() as opened:
        assert repr(opened) == "Store(in memory, 0 measurements)"


@pytest.mark.parametrize(
    ("name", "tables", "words"),
    [
        ("model", 2, ["p_launch", "s/launch", "f_op_float32_madd", "arithmetic operations", "displaystyle"]),
        ("kernel", 2, ["matmul_sq", "1024", "tiled_prefetch", "LoopyProgram"]),
        ("OpenCL", 0, []),
        ("collection", 1, ["matmul_sq", "tiled_prefetch", "generators"]),
        ("feature", 1, ["f_mem_access_global_float32_load_lstrides", "access"]),
        ("output", 1, ["f_cl_wall_time"]),
        ("store", 1, ["measurements.sqlite.xz", "NVIDIA H200", "matmul_sq", "61 measurements"]),
    ],
)
def test_notebooks_show_tables(name: str, tables: int, words: list[str], shown: dict[str, Any]) -> None:
    if not tables:
        assert not hasattr(shown[name], "_repr_html_")
        return
    html = shown[name]._repr_html_()
    assert html.count("<table>") == html.count("</table>") == tables
    assert all(word in html for word in words), html


@pytest.mark.parametrize("name", ["advice", "profile", "PTX profile", "choice", "occupancy", "pruned"])
def test_notebooks_show_what_print_shows(name: str, shown: dict[str, Any]) -> None:
    html = shown[name]._repr_html_()
    assert html == f"<pre>{escape(str(shown[name]))}</pre>"
    assert "\n" in html


def test_improvements_are_shown_as_printed(calibration: pm.Calibration) -> None:
    source = "kernel void k(global float *x) { if (get_global_id(0) < 100) x[get_global_id(0)] *= 2; }"
    kernel = pm.Kernel.from_opencl(source, "k", 256, 32, {"x": 256})
    found = pm.improve(kernel, calibration, measure=0)
    assert found._repr_html_() == f"<pre>{escape(str(found))}</pre>"
    assert "k" in found._repr_html_()


def test_nothing_of_it_is_markup(kernel: pm.Kernel, store: pm.Store) -> None:
    script = "<script>alert(1)</script>"
    measurement = next(iter(store))
    with pm.Store() as mine:
        mine.put(replace(measurement, kernel=script))
        views = [mine._repr_html_(), pm.Kernel(kernel.program, {"generator": script, "x": script}, None)._repr_html_()]
    for html in views:
        assert "<script" not in html
        assert "&lt;script&gt;" in html


def test_what_is_declared_is_shown() -> None:
    model = pm.Model("f_cl_wall_time", MULTILINE, parameters={"p_launch": 5e-6, "p_madd": (0, None)})
    html = model._repr_html_()
    assert "held at 5e-06" in html
    assert "within [0, inf]" in html
    assert str(model).splitlines()[-1] == "p_madd: within [0, inf]"


def test_a_feature_of_ones_own_has_no_family() -> None:
    class Own:
        def eval(self, knl: pm.Kernel) -> float:
            return 1.0

    assert "f_own" in pm.Model("f_cl_wall_time", "p_a * f_own", {"f_own": Own()})._repr_html_()


def test_lines_are_cut_and_numbers_have_their_noun() -> None:
    assert shortened("a  b\nc", 10) == "a b c"
    assert shortened("abcdef", 4) == "abc…"
    assert (number_of(1, "kernel"), number_of(1234, "kernel")) == ("1 kernel", "1,234 kernels")


FORMS: dict[str, Callable[[pm.Kernel], pm.Kernel]] = {
    "as_opencl": lambda kernel: kernel.as_opencl(),
    "as_compiled": lambda kernel: kernel.as_compiled(),
    "as_emulated": lambda kernel: kernel.as_emulated(),
    "as_observed": lambda kernel: kernel.as_observed(),
    "as_countable": lambda kernel: kernel.as_countable(),
    "with_transfers": lambda kernel: kernel.with_transfers(),
    "with_budget": lambda kernel: kernel.with_budget(2),
    "as_machine_code": lambda kernel: kernel.as_machine_code(),
    "as_core_code": lambda kernel: kernel.as_core_code(),
    "with_name": lambda kernel: kernel.with_name("mine"),
    "with_one_access": lambda kernel: kernel.with_one_access("load a"),
}


@pytest.mark.parametrize("derive", FORMS.values(), ids=FORMS)
def test_kernels_are_derived_by_one_grammar(derive: Callable[[pm.Kernel], pm.Kernel], kernel: pm.Kernel) -> None:
    small = kernel.at(n=64)
    assert derive(small).sizes == small.sizes
    assert all(name.startswith(("as_", "with_")) for name in FORMS)


def test_no_other_methods_give_kernels() -> None:
    methods = {name: getattr(each, "__func__", each) for name, each in inspect.getmembers(pm.Kernel)}
    returned = {name: getattr(each, "__annotations__", {}).get("return") for name, each in methods.items()}
    given = {name for name, each in returned.items() if each in ("Kernel", "Self", "list[Kernel]")}
    assert given == {
        *FORMS,
        "at",
        "of",
        "with_each_access",
        "from_opencl",
        "from_cuda",
        "from_ptx",
        "from_triton",
        "from_numba",
    }
