"""Fences beyond a block are counted, as parts of one also where accesses keep an order by themselves, and cost time."""

from __future__ import annotations

import pytest

from perfmodel import Calibration, Kernel
from perfmodel.vocabulary.named_features import feature

TEXT = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry ordered(.param .u64 x)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
    mov.f32 %f1, 0f3F800000;
    ACCESS
    ret;
}
"""
GROUPS, ITEMS = 4096, 128


def kernel(access: str) -> Kernel:
    return Kernel.from_ptx(TEXT.replace("ACCESS", access), "ordered", GROUPS, ITEMS, {"x": GROUPS * ITEMS})


@pytest.mark.parametrize(
    ("access", "fences"),
    [
        ("st.global.f32 [%rd3], %f1;", 0),
        ("st.global.f32 [%rd3], %f1; membar.gl;", 1),
        ("st.global.f32 [%rd3], %f1; fence.acq_rel.gpu;", 1),
        ("st.global.f32 [%rd3], %f1; fence.sc.sys;", 1),
        ("st.global.f32 [%rd3], %f1; membar.cta;", 0),
        ("st.global.f32 [%rd3], %f1; fence.acq_rel.cta;", 0),
        ("atom.relaxed.gpu.global.add.f32 %f2, [%rd3], %f1;", 0),
        ("atom.acq_rel.gpu.global.add.f32 %f2, [%rd3], %f1;", 1.4),
        ("atom.acq_rel.cta.global.add.f32 %f2, [%rd3], %f1;", 0),
        ("red.release.gpu.global.add.f32 [%rd3], %f1;", 0.7),
        ("ld.acquire.gpu.global.f32 %f2, [%rd3]; st.global.f32 [%rd3], %f2;", 0.25),
        ("st.release.gpu.global.f32 [%rd3], %f1;", 0.7),
    ],
)
def test_fences_are_counted(access: str, fences: float) -> None:
    items = GROUPS * ITEMS
    assert feature("f_sync_fence").eval(kernel(access)) == pytest.approx(fences * items)
    assert feature("f_sync_fence_granularity:subgroup").eval(kernel(access)) == pytest.approx(fences * items / 32)


def test_fences_cost_time() -> None:
    h200 = Calibration.shipped(device="H200")
    relaxed, ordered = (
        float(h200.predict(kernel(32 * f"atom.{order}.gpu.global.add.f32 %f2, [%rd3], %f1;")))
        for order in ("relaxed", "acq_rel")
    )
    assert 1.3 < ordered / relaxed < 4
