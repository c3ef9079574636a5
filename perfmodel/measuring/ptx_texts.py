"""The kernels of our own that are timed on CUDA devices, as PTX, which needs no compiler but the driver's."""

EMPTY_NAME = "perfmodel_empty"
REFERENCE_NAME = "perfmodel_reference"
_HEAD = ".version 7.0\n.target sm_60\n.address_size 64\n"

EMPTY_TEXT = f"{_HEAD}.visible .entry {EMPTY_NAME}() {{ ret; }}\n"

# What the reference kernel of OpenCL C is: two dependent chains, and a store that never happens.
REFERENCE_TEXT = f"""{_HEAD}
.visible .entry {REFERENCE_NAME}(.param .u64 out, .param .s32 rounds)
{{
  .reg .pred %p<2>;
  .reg .f32 %f<3>;
  .reg .b32 %r<5>;
  .reg .b64 %a<2>;
  ld.param.s32 %r0, [rounds];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r1, %r1, %r2, %r3;
  cvt.rn.f32.s32 %f0, %r1;
  cvt.rn.f32.s32 %f1, %r0;
  mov.u32 %r4, 0;
AGAIN:
  fma.rn.f32 %f0, %f0, 0f3E800000, %f1;
  fma.rn.f32 %f1, %f1, 0f3E800000, %f0;
  add.s32 %r4, %r4, 1;
  setp.lt.s32 %p0, %r4, %r0;
  @%p0 bra AGAIN;
  setp.neu.f32 %p1, %f0, 0f3DFBE76D;
  @%p1 bra DONE;
  ld.param.u64 %a0, [out];
  cvta.to.global.u64 %a1, %a0;
  st.global.f32 [%a1], %f0;
DONE:
  ret;
}}
"""
