"""Kernels have names, whatever they are made of, and those that have none are told apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import loopy as lp
import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import KernelError
from perfmodel.kernels.telling_apart import variants

SOURCE = """__kernel void tile(__global float *a, const int n)
{
    const int i = get_global_id(1) * n + get_global_id(0);
    a[i] = FACTOR * a[i] + 1;
}"""
PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry tile(.param .u64 a)
{
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [a];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], 1;
    ret;
}
"""


def tile(group: Sequence[int] = (16, 16), factor: str = "2", source: str = SOURCE, **arguments: Any) -> pm.Kernel:
    return pm.Kernel.from_opencl(
        source, "tile", ("n", "n"), group, {"a": "n*n"}, [f"-DFACTOR={factor}"], n=64, **arguments
    )


def of_loopy(**arguments: Any) -> pm.Kernel:
    arrays = [lp.GlobalArg("a", np.float32, shape="n"), lp.ValueArg("n", np.int32)]
    return pm.Kernel(lp.make_kernel("{[i]: 0 <= i < n}", "a[i] = 1", arrays, lang_version=(2018, 2)), n=8, **arguments)


KINDS: dict[str, Callable[..., pm.Kernel]] = {
    "Loopy": of_loopy,
    "OpenCL C": tile,
    "PTX": lambda **arguments: pm.Kernel.from_ptx(PTX, None, 4, 32, {"a": 128}, **arguments),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_is_given_and_stays(kind: str) -> None:
    plain, named = KINDS[kind](), KINDS[kind](name="mine, with blanks")
    assert named.name == "mine, with blanks"
    assert named == plain
    assert plain.with_name("mine").name == "mine"
    for each in (named.at(), named.with_transfers(), named.as_compiled(), named.with_budget(2)):
        assert each.name == "mine, with blanks"
    for wrong in ("", " ", "two\nlines"):
        with pytest.raises(KernelError, match="is no name for a kernel; give one line of text"):
            plain.with_name(wrong)


def test_a_generators_kernel_takes_another_name() -> None:
    (kernel,) = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "n:64"])
    assert (kernel.with_name("mine").name, kernel.with_name("mine").variant) == ("mine", kernel.variant)


def test_kernels_that_nobody_named_are_told_apart() -> None:
    groups = [tile((8, 8)), tile((16, 16)), tile((32, 8))]
    assert variants(groups) == ["group=8x8", "group=16x16", "group=32x8"]
    assert variants([tile(factor="2"), tile(factor="3")]) == ["options=FACTOR=2", "options=FACTOR=3"]
    both = variants([tile((8, 8), "2"), tile((8, 8), "3"), tile((16, 16), "2")])
    assert both == ["group=8x8 options=FACTOR=2", "group=8x8 options=FACTOR=3", "group=16x16 options=FACTOR=2"]
    other = tile((8, 8), source=SOURCE.replace("+ 1", "+ 2"))
    assert variants([tile((8, 8)), other]) == ["version=1", "version=2"]


def test_what_is_the_same_or_has_other_tags_or_sizes_stays_as_it_is() -> None:
    kernel = tile()
    assert variants([kernel, kernel, tile(), kernel.at(n=128)]) == [""] * 4
    assert variants([tile(tags={"of": "me"}), tile(tags={"of": "you"})]) == ["of=me", "of=you"]


def test_a_ranking_shows_and_carries_its_kernels() -> None:
    kernels = [tile((8, 8)), tile((16, 16)), tile((32, 8)), tile((64, 4))]
    ranking = pm.Calibration.shipped(device="H200").rank(kernels, n=1024)
    assert len({each.label for each in ranking}) == 4
    assert {each.kernel for each in ranking} == {kernel.at(n=1024) for kernel in kernels}
    assert ranking.best == ranking[0].kernel
    lines = str(ranking).splitlines()
    assert lines[0] == "tile n=1024"
    assert " ".join(lines[2].split()) == "place kernel predicted 90 % from to times the best fastest"
    assert max(map(len, lines)) <= 80
    for each, line in zip(ranking, lines[4:], strict=True):
        assert f" {each.variant} " in line
        assert f" {each.times_best:.2f} " in line
    assert list(ranking.to_frame()["variant"]) == [each.variant for each in ranking]
