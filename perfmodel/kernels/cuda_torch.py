"""Stands in the place of PyTorch's headers, which are not there: the types and functions that kernels of its extensions
know."""

from __future__ import annotations

HALVES = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
_ACCESSORS = """
template <typename T> struct DefaultPtrTraits { using PtrType = T *; };
template <typename T> struct RestrictPtrTraits { using PtrType = T *__restrict__; };
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename I = long long>
struct TensorAccessor {
  typename Traits<T>::PtrType places;
  const I *extents, *steps;
  __host__ __device__ decltype(auto) operator[](I i) const {
    if constexpr (N == 1)
      return (places[i * steps[0]]);
    else
      return TensorAccessor<T, N - 1, Traits, I>{places + i * steps[0], extents + 1, steps + 1};
  }
  __host__ __device__ I size(I i) const { return extents[i]; }
  __host__ __device__ I stride(I i) const { return steps[i]; }
  __host__ __device__ typename Traits<T>::PtrType data() const { return places; }
};
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename I = long long>
struct GenericPackedTensorAccessor {
  typename Traits<T>::PtrType places;
  I extents[N], steps[N];
  __host__ __device__ decltype(auto) operator[](I i) const {
    return TensorAccessor<T, N, Traits, I>{places, extents, steps}[i];
  }
  __host__ __device__ I size(I i) const { return extents[i]; }
  __host__ __device__ I stride(I i) const { return steps[i]; }
  __host__ __device__ typename Traits<T>::PtrType data() const { return places; }
};
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename I = long long>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, Traits, I>;
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, long long>;
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, int>;
"""
"""Tensors as PyTorch passes them by value: where their elements lie, how many along each axis, and their steps."""
OF_TORCH = f"""#ifndef TYPES_OF_TORCH
#define TYPES_OF_TORCH
{HALVES}
namespace c10 {{
struct Half : __half {{
  using __half::__half;
  Half() = default;
  __host__ __device__ Half(const __half &value) : __half(value) {{}}
  __host__ __device__ operator __half() const {{ return static_cast<const __half &>(*this); }}
}};
struct BFloat16 : __nv_bfloat16 {{
  using __nv_bfloat16::__nv_bfloat16;
  BFloat16() = default;
  __host__ __device__ BFloat16(const __nv_bfloat16 &value) : __nv_bfloat16(value) {{}}
  __host__ __device__ operator __nv_bfloat16() const {{ return static_cast<const __nv_bfloat16 &>(*this); }}
}};
}}
template <typename T> __host__ __device__ constexpr T THCCeilDiv(T a, T b) {{ return (a + b - 1) / b; }}
template <typename T> __device__ T gpuAtomicAdd(T *place, T value) {{ return atomicAdd(place, value); }}
template <typename T> __device__ void gpuAtomicAddNoReturn(T *place, T value) {{ atomicAdd(place, value); }}
namespace at {{
using c10::Half; using c10::BFloat16; using ::gpuAtomicAdd; using ::gpuAtomicAddNoReturn;
template <typename T> __host__ __device__ constexpr T ceil_div(T a, T b) {{ return (a + b - 1) / b; }}
template <typename T> struct OpMathType {{ using type = T; }};
template <> struct OpMathType<Half> {{ using type = float; }};
template <> struct OpMathType<BFloat16> {{ using type = float; }};
template <typename T> using opmath_type = typename OpMathType<T>::type;
template <typename T, bool> using acc_type = opmath_type<T>;
{_ACCESSORS}
}}
namespace torch {{ using namespace at; }}
#endif
"""
