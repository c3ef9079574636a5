"""`perfmodel tune` as a user meets it: it measures, goes on from its store, says why, and answers mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import perfmodel as pm
from perfmodel.basics.errors import PerfmodelError
from perfmodel.cli.command_line import main
from perfmodel.tuning.space import parameters_in, space

SOURCE = """__kernel void scale(__global float *a, const int n)
{
    for (int i = 0; i < WORK; i++)
        a[(get_group_id(0) * WORK + i) * GROUP + get_local_id(0)] += n;
}"""
CUDA = """__global__ void scale(float *a, int n)
{
    for (int i = 0; i < WORK; i++)
        a[(blockIdx.x * WORK + i) * GROUP + threadIdx.x] += n;
}"""
LAUNCH = ["--global", "n//{WORK}", "--local", "{GROUP}", "--arg", "n=65536", "--arg", "a=n"]
SPACE = ["--param", "GROUP=16,64,32768", "--param", "WORK=1,2"]
Ran = tuple[int, str, str]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    (tmp_path / "scale.cl").write_text(SOURCE)
    (tmp_path / "scale.cu").write_text(CUDA)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PERFMODEL_DEVICE", raising=False)

    def run(*arguments: str) -> Ran:
        return (main(["tune", *arguments, "--workers", "1"]), *capsys.readouterr())

    return run


def test_a_search_goes_on_where_it_ended(ran: Callable[..., Ran]) -> None:
    words = ["scale.cl", *LAUNCH, *SPACE, "--store", "t.sqlite", "--device", "cpu"]
    status, out, _ = ran(*words, "--evaluations", "2", "--json")
    first = json.loads(out)
    assert status == 0
    assert [each["new"] for each in first["measured"]] == [True, True]
    best = min(first["measured"], key=lambda each: float(each["seconds"]))
    assert first["best"] == {"configuration": best["configuration"], "seconds": best["seconds"]}
    status, out, _ = ran(*words, "--evaluations", "3", "--json", "--doubt", "0.0001", "--better", "0")
    again = json.loads(out)
    assert status == 0
    assert [each["new"] for each in again["measured"]] == [False, False, True]
    assert again["measured"][:2] == [{**each, "new": False} for each in first["measured"]]
    too_large = [each for each in again["expected"] if each["configuration"]["GROUP"] == 32768]
    assert all("32768 work-items, and the device takes" in each["reason"] for each in too_large)
    assert len(too_large) == 2
    with pm.Store("t.sqlite") as store:
        assert len(store) == 3


def test_what_it_found_is_told(ran: Callable[..., Ran]) -> None:
    words = ["scale.cl", *LAUNCH, *SPACE, "--where", "GROUP * WORK > 16", "--store", "t.sqlite", "--device", "cpu"]
    status, out, _ = ran(*words, "--batch", "2")
    lines = out.splitlines()
    assert status == 0
    assert lines[0].startswith("predicting 5 configurations by ")
    best = next(line for line in lines if line.startswith("best: "))
    measured = dict(line.split(": ") for line in lines[1:] if line.startswith("GROUP=") and ": " in line)
    name = best.split(" with ")[1].replace("-D", "")
    assert measured[name] == best.split(" with ")[0].removeprefix("best: ")
    assert "  2, such as GROUP=32768 WORK=1: its work-groups have 32768 work-items" in out


def test_a_dry_run_needs_no_device_and_takes_cuda(ran: Callable[..., Ran]) -> None:
    (Path("space.json")).write_text('{"GROUP": [64, 128], "WORK": [1]}')
    launch = ["--grid", "n/{GROUP}/{WORK}", "--block", "{GROUP}", "--arg", "n=1048576", "--arg", "a=n"]
    words = ["scale.cu", *launch, "--space", "space.json", "--param", "WORK=2,4", "--dry-run", "--predict", "@h200"]
    status, out, _ = ran(*words, "--json")
    found = json.loads(out)
    assert (status, found["device"], found["measured"], found["best"]) == (0, None, [], None)
    expected = {(e["configuration"]["GROUP"], e["configuration"]["WORK"]): e["seconds"] for e in found["expected"]}
    assert set(expected) == {(64, 2), (64, 4), (128, 2), (128, 4)}
    kernel = pm.Kernel.from_cuda(
        Path("scale.cu"), "scale", 1048576 // 128, 64, {"a": 1048576}, ["-DGROUP=64", "-DWORK=2"]
    )
    assert expected[64, 2] == pytest.approx(float(pm.Calibration.shipped(device="H200").predict(kernel.at(n=1048576))))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["scale.cl", *LAUNCH, *SPACE], "give --store FILE"),
        (["scale.cl", *LAUNCH, "--store", "t.sqlite"], "0 parameters have 1 combinations"),
        (["scale.cl", *LAUNCH, "--param", "GROUP=16", "--store", "t.sqlite"], "{WORK} in 'n//{WORK}' is no parameter"),
        (["scale.cl", *LAUNCH, *SPACE, "--where", "GROUPS < 3", "--dry-run"], "needs 'GROUPS', which is no size of it"),
        (["scale.cl", *LAUNCH, *SPACE, "--where", "GROUP < 3", "--dry-run"], "no configuration fulfils GROUP < 3"),
        (["scale.cl", *LAUNCH, "--param", "WORK=1,1", "--dry-run"], "parameter 'WORK' has a value twice"),
        (["scale.cl", *LAUNCH, *SPACE, "--space", "no.json", "--dry-run"], "no.json cannot be read"),
        (["scale.cl", *LAUNCH, *SPACE, "--evaluations", "0", "--dry-run"], "--evaluations 0 measures nothing"),
        (["scale.cl", *LAUNCH[:-1], "a=zeros:float32:n", *SPACE, "--dry-run"], "are measured with random numbers"),
        (["scale.py:kernel", *LAUNCH, *SPACE, "--dry-run"], "or perfmodel.tune, in Python"),
    ],
)
def test_mistakes_are_answered(words: list[str], says: str, ran: Callable[..., Ran]) -> None:
    status, out, err = ran(*words)
    assert status == 2
    assert says in err
    assert not out


def test_a_space_is_all_combinations_that_conditions_allow(tmp_path: Path) -> None:
    found = space({"a": [1, 2, 3], "b": [2, 4], "kind": ["x", "y"]}, ["a * b <= 6 and b % 2 == 0", "a != 2"])
    assert [(each["a"], each["b"]) for each in found if each["kind"] == "x"] == [(1, 2), (1, 4), (3, 2)]
    assert len(found) == 6
    with pytest.raises(PerfmodelError, match="no more than 1,000,000"):
        space({name: list(range(100)) for name in "abcd"})
    for number, text in enumerate(("[1]", '{"a": 1}', '{"a": [1.5]}', '{"a": [true]}')):
        file = tmp_path / f"{number}.json"
        file.write_text(text)
        with pytest.raises(PerfmodelError, match="no object of lists"):
            parameters_in(file)
