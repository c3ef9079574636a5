"""Surveys of folders of kernels: what works, what fails and why, and that nothing hangs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfmodel.basics.errors import SourceError, SurveyError
from perfmodel.cli.command_line import main
from perfmodel.device import Device
from perfmodel.kernels.emulation import emulate
from perfmodel.measuring.isolation.process import ProcessLimits
from perfmodel.measuring.protocol import run_launch
from perfmodel.opencl_c import reading
from perfmodel.surveying import Case, load_cases, survey

SOURCE = """\
typedef struct { float weight; int kind; } Item;

__kernel void scale(__global const float *a, __global float *out, const float by, const int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    out[i] = by * a[i] + 1;
}

__kernel void follow(__global const int *next, __global int *steps, const int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    int at = i, count = 0;
    while (at != 0) { at = next[at]; ++count; }
    steps[i] = count;
}

__kernel void weigh(__global const Item *items, __global float *out, __local float *tile)
{
    const int i = get_global_id(0);
    tile[get_local_id(0)] = items[i].kind > 3 ? items[i].weight : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[i] = tile[get_local_size(0) - 1 - get_local_id(0)];
}

__kernel void queue(__global int *taken, __global int *order)
{
    order[atomic_inc(taken)] = get_global_id(0);
}

__kernel void wait_for_ever(__global volatile int *flag)
{
    while (flag[0] == 0) ;
}

__kernel void halve(__read_only image2d_t photo, __write_only image1d_buffer_t rows, __global const char *scales)
{
    const int i = get_global_id(0);
    const float scale = ((__global const float *)scales)[i];
    write_imagef(rows, i, scale * read_imagef(photo, (int2)(i % 16, i / 16)));
}

__kernel void double_it(__global const void *a, __global char *out)
{
    const int i = get_global_id(0);
    ((__global float *)out)[i] = 2 * native_exp(((__global const float *)a)[i]);
}

__kernel void beyond(__global int *out) { out[get_global_id(0) + 100000000000L] = 1; }
"""
READ = reading.read
WRONG = "__kernel void wrong(__global int *out) { out[0] = missing; }"
ITEM = np.dtype([("weight", "f4"), ("kind", "i4")])


def case(name: str, arguments: dict[str, Any], size: int = 64, **others: Any) -> dict[str, Any]:
    launch = {"global": [size], "local": [16], "arguments": arguments}
    return {"name": name, "source": "all.cl", "kernel": name, "launches": {"cpu": launch}} | others


GOOD = [
    case("scale", {"a": "random:float32:60:-2:2", "out": "zeros:float32:60", "by": 0.5, "n": 60}, group="dense"),
    case("follow", {"next": "next.npy", "steps": 60, "n": 60}, group="graphs"),
    case("weigh", {"items": "items.npy", "out": 64, "tile": {"local_bytes": 64}}, group="dense"),
    case("queue", {"taken": "zeros:int32:1", "order": 64}, group="graphs", any_order=["order"]),
    case(
        "halve",
        {"photo": "image:rgba:unorm8:16:4", "rows": "image:rgba:float32:64", "scales": "random:float32:64:0:1"},
        group="images",
    ),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with kernels of several kinds, but without their description."""
    (tmp_path / "all.cl").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "wrong.cl").write_text(WRONG, encoding="utf-8")
    np.save(tmp_path / "next.npy", np.maximum(np.arange(60, dtype=np.int32) - 2, 0))
    rng = np.random.default_rng(3)
    items = np.zeros(64, ITEM)
    items["weight"], items["kind"] = rng.random(64), rng.integers(0, 8, 64)
    np.save(tmp_path / "items.npy", items)
    return tmp_path


def describe(folder: Path, *cases: dict[str, Any], **others: Any) -> list[Case]:
    document = {"format": "perfmodel-survey", "version": 1, "cases": list(cases), **others}
    (folder / "survey.json").write_text(json.dumps(document), encoding="utf-8")
    return load_cases(folder)


def test_what_a_compiler_says_is_told(folder: Path, cpu: Device) -> None:
    found = survey(describe(folder, case("wrong", {"out": 64}, source="wrong.cl")), device=cpu.key)
    (failure,) = (stage.failure for _, stage in found.failures if stage.name == "built")
    assert failure.startswith("kernel 'wrong' does not compile on")
    assert "undeclared identifier 'missing'" in failure
    assert "\n" not in failure


def test_kernels_go_through_all_stages(folder: Path, cpu: Device) -> None:
    seen: list[str] = []
    found = survey(
        describe(folder, *GOOD),
        device=cpu.key,
        calibration="unified-plus@h200",
        measured=True,
        on_case=lambda outcome: seen.append(outcome.case.name),
    )
    assert found.failures == []
    assert found.stages == ("read", "counted", "predicted", "emulated", "built", "equal", "measured")
    assert seen == [each["name"] for each in GOOD]
    assert {group: len(outcomes) for group, outcomes in found.groups.items()} == {"dense": 2, "graphs": 2, "images": 1}
    observed = {}
    for outcome in found.outcomes:
        predicted, measured, counted = (outcome.stage(name) for name in ("predicted", "measured", "counted"))
        assert predicted is not None
        assert measured is not None
        assert counted is not None
        assert counted.processor_seconds is not None
        assert counted.processor_seconds > 0
        observed[outcome.case.name] = counted.values["observed"]
        assert 0 < predicted.values["low_s"] <= predicted.values["predicted_s"]
        assert predicted.values["high_s"] is None or predicted.values["predicted_s"] <= predicted.values["high_s"]
        ratio = predicted.values["predicted_s"] / measured.values["measured_s"]
        assert outcome.error == pytest.approx(abs(ratio - 1))
    assert observed == {"scale": False, "follow": True, "weigh": True, "queue": True, "halve": False}


def test_what_fails_is_told_and_ends_nothing_else(folder: Path, cpu: Device) -> None:
    cases = describe(
        folder,
        case("wrong", {"out": 64}, source="wrong.cl"),
        case("wait_for_ever", {"flag": "zeros:int32:1"}),
        case("beyond", {"out": 64}),
        case("scale", {"a": 60, "out": 60, "by": 2.0}),
        GOOD[0] | {"name": "after"},
    )
    found = survey(cases, device=cpu.key, limits=ProcessLimits(20.0))
    why = {(case.name, stage.name): stage.failure for case, stage in found.failures}
    assert "missing" in why["wrong", "read"]
    assert "says nothing of the argument 'n'" in why["scale", "read"]
    assert any(name == "wait_for_ever" for name, _ in why)
    # The access crashes the driver's process, or reads what nobody knows; the emulation says it in any case.
    assert found.outcomes[2].succeeded("read")
    assert [stage.succeeded for stage in found.outcomes[-1].stages] == [True] * 5
    assert found.outcomes[0].stage("counted") is None  # makes no sense


def test_results_that_differ_are_told(folder: Path, cpu: Device) -> None:
    """The emulation has one version of OpenCL, and drivers have theirs."""
    source = (
        "__kernel void version(__global int *out) { out[get_global_id(0)] = get_global_id(0) + __OPENCL_VERSION__; }"
    )
    (folder / "all.cl").write_text(source, encoding="utf-8")
    (described,) = describe(folder, case("version", {"out": 64}))
    kernel = described.as_kernel()
    device = run_launch(kernel.launch(), cpu, described.host_arrays(kernel))["out"]
    emulated = emulate(kernel, groups="all").array("out")
    stage = survey([described], device=cpu.key).outcomes[0].stage("equal")
    assert stage is not None
    if device[0] == emulated[0]:
        assert stage.succeeded
    else:
        assert (
            f"'out' of kernel 'version' differs in 64 of 64 numbers, first in number 0: {emulated[0]}" in stage.failure
        )
        assert survey(describe(folder, case("version", {"out": 64}, any_order=["out"])), device=cpu.key).failures == []


def test_a_device_rounds_as_it_is_written(folder: Path, cpu: Device) -> None:
    """One that multiplies and adds in one step sees what is left of a product after rounding it."""
    source = """
__kernel void left(__global const float *a, __global const float *squares, __global int *out)
{
    const int i = get_global_id(0);
    out[i] = a[i] * a[i] - squares[i] != 0.0f;
}
"""
    (folder / "all.cl").write_text(source, encoding="utf-8")
    a = np.random.default_rng(5).random(64, np.float32)
    np.save(folder / "a.npy", a)
    np.save(folder / "squares.npy", a * a)
    left = case("left", {"a": "a.npy", "squares": "squares.npy", "out": "zeros:int32:64"})
    assert survey(describe(folder, left), device=cpu.key).failures == []


def test_whole_numbers_of_any_rounding_may_be_off_by_one(folder: Path, cpu: Device) -> None:
    source = """
#ifdef __clang__
#define FOUND 7 + BY
#else
#define FOUND 7
#endif
__kernel void off(__global uchar *out) { out[get_global_id(0)] = FOUND; }
"""
    (folder / "all.cl").write_text(source, encoding="utf-8")
    (described,) = describe(folder, case("off", {"out": 64}, options=["-DBY=1"]))
    if run_launch(described.as_kernel().launch(), cpu, {})["out"][0] == 7:
        pytest.skip("the device has another compiler")
    for by, names, fails in ((1, [], True), (1, ["out"], False), (2, ["out"], True)):
        given = describe(folder, case("off", {"out": 64}, options=[f"-DBY={by}"], any_rounding=names))
        assert bool(survey(given, device=cpu.key).failures) == fails


def test_mistakes_are_said_with_their_places_as_a_case_is_done(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "__kernel void meet(__global int *out) {\n  out[get_group_id(0)] = get_local_id(0);\n}"
    (folder / "meet.cl").write_text(text, encoding="utf-8")
    describe(folder, case("meet", {"out": 4}) | {"source": "meet.cl"})
    assert main(["survey", str(folder)]) == 0
    said = capsys.readouterr().err
    assert "meet: all stages done; meet.cl:2" in said
    assert "race" in said


@pytest.mark.parametrize(
    ("entry", "culprit"),
    [
        ({"name": ""}, "has no name"),
        ({"kernel": 3}, "has no kernel"),
        ({"lunches": {}}, "'lunches'"),
        ({"options": "-DX"}, "options '-DX'"),
        ({"options": [3]}, "no strings"),
        ({"launches": {"cpu": {"global": [4], "local": [4]}}}, "no arguments"),
        ({"launches": {"cpu": {"global": [4.5], "local": [4], "arguments": {}}}}, "no global size"),
        ({"launches": {"cpu": {"global": [4], "local": [4], "arguments": {}, "size": 3}}}, "'size'"),
        (
            {"launches": {"cpu": {"global": [4], "local": [4], "arguments": {}, "any_order": ["a"]}}},
            "write it beside the launches",
        ),
        ({"launches": {"cpu": {}, "gpu": {}}}, "choose one by --launch"),
    ],
)
def test_bad_descriptions_are_refused_in_a_sentence(folder: Path, entry: dict[str, Any], culprit: str) -> None:
    with pytest.raises(SurveyError, match=culprit) as caught:
        describe(folder, GOOD[0] | entry)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        ({"a": "random:float64:60"}, "say float32"),
        ({"a": "random:float32"}, "not understood"),
        ({"a": "random:string:60"}, "'string' is no type of numbers"),
        ({"a": "zeros:float32:99999999999999"}, "4294967296 bytes"),
        ({"a": "missing.npy"}, "cannot be read"),
        ({"a": "../all.npy"}, "outside"),
        ({"a": "next.npy"}, "have int32"),
        ({"a": True}, "not understood"),
        ({"b": 3}, "no argument 'b'"),
    ],
)
def test_bad_data_are_refused_in_a_sentence(folder: Path, arguments: dict[str, Any], culprit: str) -> None:
    described = json.loads(json.dumps(GOOD[0]))
    described["launches"]["cpu"]["arguments"] |= arguments
    (stage,) = [stage for _, stage in survey(describe(folder, described)).failures]
    assert culprit in stage.failure


def test_random_contents_have_the_types_of_structs_and_the_bounds_that_are_said(folder: Path) -> None:
    items = case("weigh", {"items": 64, "out": 64, "tile": {"local_bytes": 64}})
    scale = case("scale", {"a": "random:float32:5000:-2:2", "out": 60, "by": 0.5, "n": 60})
    weigh, scaled = describe(folder, items, scale)
    found = weigh.arrays["items"]
    assert found.dtype.names == ("weight", "kind")
    assert set(found["kind"]) == set(range(1, 8))
    assert 0.5 <= found["weight"].min() < found["weight"].max() < 1.5
    (whole,) = describe(folder, case("weigh", {"items": "zeros:uint8:512", "out": 64, "tile": {"local_bytes": 64}}))
    assert whole.arrays["items"].shape == (64,)
    assert not whole.arrays["items"]["kind"].any()
    values = scaled.arrays["a"]
    assert values.min() < -1.9
    assert values.max() > 1.9
    assert abs(values.mean()) < 0.1


def test_bytes_are_compared_as_the_numbers_that_they_are_said_to_be(folder: Path, cpu: Device) -> None:
    """A device rounds in its own way, after which bytes of a float may differ altogether."""
    said = case("double_it", {"a": "random:float32:64:0:2", "out": "zeros:float32:64"})
    saved = case("double_it", {"a": "a.npy", "out": "zeros:float32:64"}) | {"name": "saved"}
    np.save(folder / "a.npy", np.linspace(0, 2, 64, dtype=np.float32))
    bare = case("double_it", {"a": "a.npy", "out": "zeros:uint8:256"}) | {"name": "bare"}
    found = survey(describe(folder, said, saved, bare), device=cpu.key, without=["counted"])
    assert [outcome.succeeded("equal") for outcome in found.outcomes] == [True, True, False]
    assert [each.contents["a"].dtype for each in describe(folder, said, saved)] == [np.float32, np.float32]


def test_a_source_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading is what large sources cost most."""
    reads: list[str] = []

    def counted(source: str, *given: Any, **more: Any) -> Any:
        reads.append(source)
        return READ(source, *given, **more)

    monkeypatch.setattr(reading, "read", counted)
    (folder / "half.h").write_text("#define HALF 0.5f\n", encoding="utf-8")
    half = "__kernel void half_of(__global float *a) { a[get_global_id(0)] *= HALF; }"
    source = f'#define HEADER "half.h"\n#include HEADER\n{half}\n'
    (folder / "once.cl").write_text(source, encoding="utf-8")
    (each,) = describe(folder, case("half_of", {"a": 64}) | {"source": "once.cl"})
    kernel = each.as_kernel()
    kernel.counts_for(32)
    emulate(kernel, each.arrays)
    assert len(reads) == 1


def test_stages_are_left_out_by_name(folder: Path) -> None:
    cases = describe(folder, GOOD[0])
    (outcome,) = survey(cases, without=["emulated"]).outcomes
    assert [stage.name for stage in outcome.stages] == ["read", "counted"]
    with pytest.raises(SurveyError, match="no stage 'emulate'; did you mean 'emulated'"):
        survey(cases, without=["emulate"])
    with pytest.raises(SurveyError, match="does nothing"):
        survey(cases, without=["read", "counted", "emulated"])


def test_counting_takes_the_effort_that_is_said(folder: Path) -> None:
    np.save(folder / "next.npy", np.maximum(np.arange(1000, dtype=np.int32) - 1, 0))
    cases = describe(folder, case("follow", {"next": "next.npy", "steps": 1000, "n": 1000}, size=1008))
    sampled = []
    for effort in (None, 1e-4):
        (outcome,) = survey(cases, without=["emulated"], effort=effort).outcomes
        sampled.append(outcome.stages[-1].values["sampled"])
    assert sampled == [False, True]


def test_the_command_prints_tables_and_keeps_each_case(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    describe(folder, *GOOD, case("wrong", {"out": 64}, source="wrong.cl"))
    kept = tmp_path / "kept.jsonl"
    assert main(["survey", str(folder), "scale", "wr*", "--out", str(kept)]) == 1
    shown = capsys.readouterr()
    assert "missing" in shown.out
    assert "wrong: read failed" in shown.err
    assert [json.loads(line)["name"] for line in kept.read_text().splitlines()] == ["scale", "wrong"]
    assert main(["survey", str(folder), "scale", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["cases"][0]["stages"]["counted"]["failure"] == ""


def test_only_a_processor_is_not_measured_by_several_jobs(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SurveyError, match="2 jobs would disturb each other's times on a processor"):
        survey([], device=cpu.key, measured=True, jobs=2)
    assert survey([], device=cpu.key, jobs=2).outcomes == ()
    assert survey([], device=cpu.key, measured=True, jobs=1).outcomes == ()
    monkeypatch.setattr("perfmodel.device.find_device", lambda name: replace(cpu, key=name, kind="gpu"))
    assert survey([], device="a-gpu", measured=True, jobs=2).outcomes == ()


@pytest.mark.parametrize(
    ("words", "culprit"),
    [
        (["nowhere"], "nowhere is no folder"),
        (["."], "has no file survey.json"),
        (["{}", "nothing"], "no case is called 'nothing'"),
        (["{}", "--measure"], "needs a device"),
        (["{}", "--jobs", "0"], "--jobs 0"),
        (["{}", "--time-limit", "0"], "time limit"),
        (["{}", "--effort", "0"], "leaves nothing for counting"),
        (["{}", "--memory-limit", "inf"], "memory limit of inf GiB"),
        (["{}", "--predict", "nothing"], "nothing"),
        (["{}", "--launch", "gpu"], "launch 'gpu'"),
        (["{}", "--out", "/nowhere/x"], "--out"),
    ],
)
def test_the_command_refuses_in_a_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], culprit: str
) -> None:
    describe(folder, *GOOD)
    empty = folder / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    assert main(["survey", *(word.format(folder) for word in words)]) == 2
    shown = capsys.readouterr().err
    assert culprit in shown
    assert shown.count("\n") == 1


def test_ways_to_headers_lead_up_within_the_folder(folder: Path) -> None:
    (folder / "kernels").mkdir()
    (folder / "common").mkdir()
    (folder / "common" / "twice.h").write_text("#define TWICE(x) (2 * (x))\n", encoding="utf-8")
    text = '#include "../common/twice.h"\n__kernel void twice(__global int *a) { a[get_global_id(0)] = TWICE(1); }'
    (folder / "kernels" / "twice.cl").write_text(text, encoding="utf-8")
    (described,) = describe(folder, case("twice", {"a": 64}) | {"source": "kernels/twice.cl"})
    assert described.as_kernel().name == "twice"
    (folder.parent / "secret.h").write_text("#define TWICE(x) 0\n", encoding="utf-8")
    (folder / "kernels" / "twice.cl").write_text(text.replace("common/twice", "../secret"), encoding="utf-8")
    (described,) = describe(folder, case("twice", {"a": 64}) | {"source": "kernels/twice.cl"})
    with pytest.raises(SourceError, match=r"secret\.h"):
        described.as_kernel()


def test_random_numbers_of_64_bits_may_be_any(folder: Path) -> None:
    text = "__kernel void mix(__global ulong *a) { a[get_global_id(0)] ^= 1; }"
    (folder / "mix.cl").write_text(text, encoding="utf-8")
    said = {"a": f"random:uint64:64:0:{2**64 - 1}"}
    (described,) = describe(folder, case("mix", said) | {"source": "mix.cl"})
    values = described.arrays["a"]
    assert values.dtype == np.uint64
    assert values.max() > 2**63 > values.min()
