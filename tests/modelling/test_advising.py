"""Advice is what other predictions say: of padded tiles, work-groups, siblings, and less of what a kernel does."""

from __future__ import annotations

import json

import loopy as lp
import numpy as np
import pytest

import perfmodel as pm
from perfmodel.cli.command_line import main
from perfmodel.modelling.advising import LEAST_SAVING, MOST_CHANGES, Advice
from perfmodel.modelling.alternatives import alternatives

TRANSPOSE = """
__kernel void transpose(__global float *out, __global const float *a, const int n)
{
    __local float tile[32][32];
    int x = get_local_id(0), y = get_local_id(1);
    tile[y][x] = a[get_global_id(1) * n + get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[(get_group_id(0) * 32 + y) * n + get_group_id(1) * 32 + x] = tile[x][y];
}
"""
STREAM = "__kernel void stream(__global float *x) { x[get_global_id(0)] *= 2; }"


@pytest.fixture(scope="module")
def h200() -> pm.Calibration:
    return pm.Calibration.shipped(device="H200")


def transpose(source: str = TRANSPOSE) -> pm.Kernel:
    return pm.Kernel.from_opencl(source, "transpose", ("n", "n"), (32, 32), {"out": "n*n", "a": "n*n"}, n=4096)


def words(advice: Advice) -> str:
    return "\n".join(change.words for change in advice.changes)


def test_a_tile_with_bank_conflicts_is_to_be_padded(h200: pm.Calibration) -> None:
    advice = h200.advise(transpose())
    first = advice.changes[0]
    assert first.words == "padding the rows of tile by one element"
    assert first.saving > 0.1
    by_hand = transpose(TRANSPOSE.replace("[32];", "[33];"))
    assert first.seconds == pytest.approx(float(h200.predict(by_hand)))
    assert first.kernel is not None
    assert "(32) + 1];" in first.kernel.program.as_opencl().source
    imagined = next(each for each in advice.changes if each.words == "local memory without bank conflicts")
    assert imagined.seconds == pytest.approx(first.seconds, rel=0.05)
    padded = h200.advise(first.kernel)
    assert "padding" not in words(padded)
    assert "bank conflicts" not in words(padded)


def test_work_groups_are_tried_where_they_do_not_matter() -> None:
    kernel = pm.Kernel.from_opencl(STREAM, "stream", 2**20, 32, {"x": 2**20})
    tried = {each.kernel.launch().local_size for each in alternatives(kernel)}
    assert tried == {(64,), (16,), (128,)}
    assert not list(
        alternatives(pm.Kernel.from_opencl(STREAM.replace("global_id", "local_id"), "stream", 64, 32, {"x": 64}))
    )
    assert [each.what for each in alternatives(transpose())] == ["tile"]


def test_siblings_of_a_generator_are_tried(h200: pm.Calibration) -> None:
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    slow, fast = collection.generate_kernels(["matmul_sq", "tiled_prefetch:False,True", "n:512"])
    found = {change.words: change for change in h200.advise(slow).changes}
    change = found["tiled_prefetch=True instead of False"]
    assert change.kernel == fast
    assert change.seconds == pytest.approx(float(h200.predict(fast)))
    assert "half the transactions of global memory (neighbours that access neighbours)" in found


def test_advice_is_short_and_in_order(h200: pm.Calibration) -> None:
    advice = h200.advise(transpose())
    assert len(advice.changes) <= MOST_CHANGES
    assert min(change.saving for change in advice.changes) >= LEAST_SAVING
    of_kernels = [change.kernel is not None for change in advice.changes]
    assert of_kernels == sorted(of_kernels, reverse=True)
    for change in advice.changes:
        assert change.saving == pytest.approx(1 - change.seconds / advice.seconds)


def test_a_kernel_that_only_launches_has_none(h200: pm.Calibration) -> None:
    kernel = pm.Kernel.from_opencl("__kernel void nothing(void) {}", "nothing", 1024, 1024, {})
    assert str(h200.advise(kernel)) == "what to change: nothing that was tried saves 3 %"


def test_the_command_ends_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["explain", "gpu@h200", "matmul_sq", "tiled_prefetch:False", "n=512"]
    assert main(command) == 0
    shown = capsys.readouterr().out.split("what to change, by its own prediction:\n")
    assert "tiled_prefetch=True instead of False would save" in shown[1]
    assert main([*command, "--json"]) == 0
    (explained,) = json.loads(capsys.readouterr().out)["explanations"]
    assert {"words", "seconds", "saving", "kernel"} == set(explained["advice"][0])


def test_twice_the_work_items_is_a_launch_where_loops_take_steps_of_them(h200: pm.Calibration) -> None:
    source = """__kernel void add(__global float *x, const int n) {
        for (int i = get_global_id(0); i < n; i += STEP) x[i] += 1;
    }"""

    def kernel(step: str, items: int = 2048) -> pm.Kernel:
        text = source.replace("STEP", step)
        return pm.Kernel.from_opencl(text, "add", items, 64, {"x": "n"}, n=2**24)

    found = {each.what: each.kernel for each in alternatives(kernel("get_global_size(0)", 1024))}
    assert found["launch"].launch().global_size == (512,)
    change = h200.advise(kernel("get_global_size(0)")).changes[0]
    assert change.words == "four times the work-items (8192)"
    assert change.seconds == pytest.approx(float(h200.predict(kernel("get_global_size(0)", 8192))))
    # Where the step is a number of its own, another launch would do other work: it is only thought of.
    imagined = {each.words: each for each in h200.advise(kernel("2048")).changes}
    thought = imagined["twice the work-items, each with half of the work"]
    assert thought.kernel is None
    assert thought.seconds == pytest.approx(float(h200.predict(kernel("4096", 4096))), rel=0.05)
    once = pm.Kernel.from_opencl(STREAM, "stream", 2**20, 64, {"x": 2**20})
    assert "twice the work-items" not in words(h200.advise(once))


def test_loopy_programs_of_ones_own_are_transformed(h200: pm.Calibration) -> None:
    program = lp.make_kernel(
        "{[i]: 0 <= i < n}",
        "x[i] = 2 * x[i]",
        [lp.GlobalArg("x", np.float32, shape="n"), "..."],
        assumptions="n >= 1",
        lang_version=(2018, 2),
    )
    first = h200.advise(pm.Kernel(program, n=2**20)).changes[0]
    assert first.words.startswith("work-groups of ")
    assert first.saving > 0.9
