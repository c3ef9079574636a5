"""Surveys of CUDA kernels: compiled, read, counted, predicted, and run by way of CUDA."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfmodel.basics.errors import SurveyError
from perfmodel.basics.tables import seconds
from perfmodel.cli.command_line import main
from perfmodel.device import CUDA, Device, devices, find_device
from perfmodel.kernels.emulation import emulate
from perfmodel.report.survey_table import as_text
from perfmodel.surveying import Case, load_cases, survey
from perfmodel.surveying.stages import CaseStages
from tests.fake_cuda import FakeLibrary, installed

pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")

SOURCE = """\
#include "four.cuh"
struct Item { float weight; int kind; };

template <typename T, int N>
__global__ void scale(const T *a, T *out, const T *bias, T by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = N * by * a[i] + (bias ? bias[i] : T(FOUR));
}

__global__ void weigh(const Item *items, float4 *out, int2 between)
{
    extern __shared__ float tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int kind = items[i].kind;
    tile[threadIdx.x] = kind >= between.x && kind < between.y ? items[i].weight : 0.0f;
    __syncthreads();
    out[i] = make_float4(tile[blockDim.x - 1 - threadIdx.x], 1, 2, 3);
}

__global__ void follow(const int *next, int *steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, count = 0;
    if (i >= n) return;
    for (int at = i; at != 0; at = next[at]) ++count;
    steps[i] = count;
}

template <typename T> struct View { T *data; int rows; long stride; };
__global__ void turned(View<const float> from, View<double> to, float by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < from.stride)
        for (int row = 0; row < from.rows; ++row) to.data[i * to.stride + row] = by * from.data[row * from.stride + i];
}

__global__ void shown(cudaTextureObject_t image, const unsigned *order, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[order[i]] = tex2D<float>(image, i % 16 / 16.0f, i / 16 / 8.0f);
}

__global__ void beyond(float *out) { out[threadIdx.x + 1000] = 1; }
"""
ITEM = np.dtype([("weight", "f4"), ("kind", "i4")])


def case(name: str, arguments: dict[str, Any], shared: int | None = None, **others: Any) -> dict[str, Any]:
    launch: dict[str, Any] = {"grid": [4], "block": [32], "arguments": arguments}
    launch |= {} if shared is None else {"shared": shared}
    own = {"name": name, "source": "all.cu", "kernel": name, "folders": ["include"], "launches": {"gpu": launch}}
    return own | others


SCALE = case(
    "scale",
    {"a": "random:float64:100:-2:2", "out": "zeros:float64:100", "bias": None, "by": 0.5, "n": 100},
    kernel="scale<double, 3>",
)
TURNED = case(
    "turned",
    {
        "from": ["random:float32:500:1:2", 5, 0, {"int64": 100}],
        "to_0": "zeros:float64:500",
        "to_2": 100,
        "to_4": 5,
        "to_5": 0,
        "by": 2,
    },
)
GOOD = [
    SCALE,
    TURNED,
    case("weigh", {"items": "items.npy", "out": 128, "between": [2, 6]}, 128),
    case("follow", {"next": "next.npy", "steps": "zeros:int32:100", "n": 100}),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with kernels of several kinds, but without their description."""
    (tmp_path / "all.cu").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "four.cuh").write_text("#define FOUR 4\n", encoding="utf-8")
    rng = np.random.default_rng(3)
    items = np.zeros(128, ITEM)
    items["weight"], items["kind"] = rng.random(128), rng.integers(0, 8, 128)
    np.save(tmp_path / "items.npy", items)
    np.save(tmp_path / "next.npy", np.maximum(np.arange(100, dtype=np.int32) - 2, 0))
    return tmp_path


@pytest.fixture
def gpu() -> Iterator[Device]:
    """Yields a device of CUDA whose launches the emulator runs."""
    with installed(FakeLibrary()):
        yield find_device("cuda")
        for device in devices():
            if device.runtime == CUDA:
                device.end_session()


def describe(folder: Path, *cases: dict[str, Any]) -> list[Case]:
    document = {"format": "perfmodel-survey", "version": 1, "cases": list(cases)}
    (folder / "survey.json").write_text(json.dumps(document), encoding="utf-8")
    return load_cases(folder)


def test_textures_are_said_as_images_and_whole_numbers_with_a_sign_or_without(folder: Path) -> None:
    np.save(folder / "order.npy", np.arange(128, dtype=np.int32))
    given = {"image": "image:rgba:uint8:16:8:normalized:linear", "order": "order.npy", "out": "zeros:float32:128"}
    found = survey(describe(folder, case("shown", given)), calibration="@h200")
    assert found.failures == []


def test_kernels_are_predicted_without_a_device(folder: Path) -> None:
    found = survey(describe(folder, *GOOD), calibration="@h200")
    assert found.failures == []
    assert found.stages == ("read", "counted", "predicted", "emulated")
    for outcome in found.outcomes:
        predicted = outcome.stage("predicted")
        assert predicted is not None
        assert 0 < predicted.values["low_s"] <= predicted.values["predicted_s"] <= predicted.values["high_s"]
        (line,) = [line for line in as_text(found).splitlines() if seconds(predicted.values["predicted_s"]) in line]
        assert line.split("  ")[0].strip() == outcome.case.name


@pytest.mark.parametrize("entry", GOOD, ids=lambda entry: str(entry["name"]))
def test_kernels_go_through_all_stages_of_a_device(folder: Path, gpu: Device, entry: dict[str, Any]) -> None:
    (described,) = describe(folder, entry)
    stages = CaseStages(described, gpu.key)
    for name in ("read", "counted", "emulated", "built", "equal", "measured"):
        stage = stages.run(name)
        assert stage.failure == ""
    assert stage.values["measured_s"] > 0


def test_arguments_are_what_is_said_of_them(folder: Path) -> None:
    scale, _, weigh, follow = describe(folder, *GOOD)
    a = scale.arrays["a"]
    assert scale.as_kernel().launch().source.count("fma.rn.f64")
    out = emulate(scale.as_kernel(), scale.arrays, groups="all").array("out")
    np.testing.assert_allclose(out, 1.5 * a + 4)
    assert a.min() < -1
    items = np.load(folder / "items.npy")
    found = emulate(weigh.as_kernel(), weigh.arrays, groups="all").array("out").reshape(4, 32, 4)
    kinds = items["kind"]
    expected = np.where((kinds >= 2) & (kinds < 6), items["weight"], 0).reshape(4, 32)[:, ::-1]
    np.testing.assert_array_equal(found[..., 0], expected)
    steps = emulate(follow.as_kernel(), follow.arrays, groups="all").array("steps")
    np.testing.assert_array_equal(steps, (np.arange(100) + 1) // 2)


def test_counts_are_those_of_the_data(folder: Path) -> None:
    """Arrays that words describe are made only where sampled blocks touch them."""
    long = case("follow", {"next": "zeros:int32:100000000", "steps": 100000000, "n": 100})
    none, ends = describe(folder, long, SCALE)
    kernel = none.as_kernel().as_countable(none.sampled)
    loads = [each for each in kernel.counts_for(32).accesses if each.variable == "next"]
    assert sum(float(each.executions.workitem(kernel.sizes)) for each in loads) == pytest.approx(99)
    assert set(ends.sampled) == {"a", "out"}


def test_results_that_differ_are_told(folder: Path, gpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(launch: Any, device: Device, arrays: dict[str, Any]) -> dict[str, Any]:
        return {"out": arrays["out"] + 1}

    monkeypatch.setattr("perfmodel.surveying.stages.run_launch", other)
    for any_order, told in (([], "differs in 100 of 100 numbers"), (["out"], "")):
        (described,) = describe(folder, SCALE | {"any_order": any_order})
        failure = CaseStages(described, gpu.key).run("equal").failure
        assert told in failure
        assert bool(failure) == bool(told)


def test_what_fails_is_told(folder: Path) -> None:
    cases = describe(
        folder,
        case("missing", {}),
        case("scale", {}),
        case("beyond", {"out": 32}),
        case("follow", {"next": "next.npy", "steps": 100}),
        SCALE | {"name": "of floats", "kernel": "scale<float, 3>"},
        SCALE | {"name": "without folders", "folders": []},
    )
    why = {case.name: stage.failure for case, stage in survey(cases, without=["emulated"]).failures}
    assert "has no kernel 'missing'" in why["missing"]
    assert "is a template <typename T, int N>" in why["scale"]
    assert "of 'out'" in why["beyond"]
    assert "says nothing of the argument 'n'" in why["follow"]
    assert "float64, and the kernel takes float32" in why["of floats"]
    assert "FOUR" in why["without folders"]


def test_a_device_without_cuda_leaves_stages_out(folder: Path, cpu: Device, capsys: pytest.CaptureFixture[str]) -> None:
    describe(folder, *GOOD)
    found = survey(load_cases(folder), device=cpu.key, measured=True)
    assert found.failures == []
    assert {stage.name for _, stage in found.left_out} == {"built", "equal", "measured"}
    assert all(f"{cpu.key} runs no kernels by way of CUDA" == stage.left_out for _, stage in found.left_out)
    assert not any(outcome.succeeded("built") for outcome in found.outcomes)
    assert main(["survey", str(folder), "scale", "--device", cpu.key]) == 0
    assert "runs no kernels by way of CUDA" in capsys.readouterr().out


def test_pointers_in_structs(folder: Path) -> None:
    (turned,) = describe(folder, TURNED)
    x = turned.arrays["from_0"]
    assert turned.as_kernel().sizes == {"from_2": 5, "from_4": 100, "from_5": 0, "to_4": 5, "to_5": 0}
    found = emulate(turned.as_kernel(), turned.arrays, groups="all").array("to_0")
    np.testing.assert_array_equal(found.reshape(100, 5), 2 * x.reshape(5, 100).T)
    assert 1 <= x.min() < x.max() < 2


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"from": [500, "zeros:float32:500"]}, "a pointer in struct 'from' begins at its byte 4, no multiple of 8"),
        ({"from": ["zeros:float32:500", 5, {"int64": 100}]}, "int64 in struct 'from' begins at its byte 12, no mul"),
        ({"from": ["zeros:float99:500"]}, "'float99' is no type of numbers"),
        ({"from": ["missing.npy", 5, 0, 100, 0]}, "missing.npy cannot be read"),
        ({"from": [None, 5, 0, 100, 0]}, "nothing lies; give its arrays, one for each pointer in a struct"),
        ({"from": [0, 0, 5, 0, 100, 0]}, "give its arrays, one for each pointer in a struct"),
        ({"from": [["../above.npy"], 5, 0, 100, 0]}, "outside the survey's folder"),
        ({"from_9": 1}, "has no argument 'from_9'"),
        ({}, "says nothing of the argument 'from'"),
    ],
)
def test_what_is_wrong_with_structs_is_told(folder: Path, said: dict[str, Any], why: str) -> None:
    others = {"to": ["zeros:float64:500", [100, 0, 5, 0]], "by": 2}
    (_, stage), *_ = survey(describe(folder, case("turned", said | others))).failures
    assert why in stage.failure


@pytest.mark.parametrize(
    ("entry", "culprit"),
    [
        ({"source": "all.cpp"}, "'all.cpp'; give a file that ends in .cl, .cu"),
        (
            {"launches": {"gpu": {"global": [4], "block": [4], "arguments": {}}}},
            "'global', which is not known there; leave it out",
        ),
        ({"launches": {"gpu": {"grid": [4], "block": [0], "arguments": {}}}}, "no block size"),
        ({"launches": {"gpu": {"grid": [4], "block": [4], "shared": -1, "arguments": {}}}}, "shared -1"),
    ],
)
def test_bad_descriptions_are_refused_in_a_sentence(folder: Path, entry: dict[str, Any], culprit: str) -> None:
    with pytest.raises(SurveyError, match=culprit) as caught:
        describe(folder, SCALE | entry)
    assert "\n" not in str(caught.value)
