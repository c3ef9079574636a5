"""HIP's headers, as far as kernels need them: AMD's language is CUDA C++ under other names, and so compiled."""

from __future__ import annotations

from collections.abc import Mapping

_COORDINATES = "".join(
    f"#define hip{name[0].upper()}{name[1:]}_{axis} {name}.{axis}\n"
    for name in ("threadIdx", "blockIdx", "blockDim", "gridDim")
    for axis in "xyz"
)
_LANES = """
#define __shfl(value, ...) __shfl_sync(~0u, value, __VA_ARGS__)
#define __shfl_up(value, ...) __shfl_up_sync(~0u, value, __VA_ARGS__)
#define __shfl_down(value, ...) __shfl_down_sync(~0u, value, __VA_ARGS__)
#define __shfl_xor(value, ...) __shfl_xor_sync(~0u, value, __VA_ARGS__)
#define __ballot(predicate) ((unsigned long long)__ballot_sync(~0u, predicate))
#define __any(predicate) __any_sync(~0u, predicate)
#define __all(predicate) __all_sync(~0u, predicate)
"""
_OTHER = """
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define unsafeAtomicAdd atomicAdd
#define hipLaunchKernelGGL(...)
"""
_RUNTIME = f"#ifndef HIP_RUNTIME\n#define HIP_RUNTIME\n{_COORDINATES}{_LANES}{_OTHER}#endif\n"
HIP_HEADERS: Mapping[str, str] = {
    "hip/hip_runtime.h": _RUNTIME,
    "hip/hip_runtime_api.h": "#pragma once\n",
    "hip/hip_fp16.h": "#include <cuda_fp16.h>\n",
    "hip/hip_bf16.h": "#include <cuda_bf16.h>\n#define __hip_bfloat16 __nv_bfloat16\n",
    "hip/hip_cooperative_groups.h": "#include <cooperative_groups.h>\n",
    "hip/hip_vector_types.h": "#pragma once\n",
    "hip/hip_complex.h": "#include <cuComplex.h>\n",
}
"""Headers by the names by which sources include them."""
