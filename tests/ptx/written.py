"""A kernel written in PTX, of which tests change the part that computes."""

from __future__ import annotations

from perfmodel import Kernel

HEAD = ".version 8.8\n.target sm_90\n.address_size 64\n"
ROUND = """
.visible .entry twice(.param .u64 x, .param .u32 n)
{
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;
  ld.param.u64 %rd1, [x];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.s32 %r5, %r3, %r4, %r2;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra $done;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.s32 %rd3, %r5, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  BODY
  st.global.f32 [%rd4], %f2;
$done:
  ret;
}
"""


def twice(body: str = "add.f32 %f2, %f1, %f1;", table: str = "") -> Kernel:
    return Kernel.from_ptx(HEAD + table + ROUND.replace("BODY", body), None, "(n + 63) / 64", 64, {"x": "n"}, n=1000)
