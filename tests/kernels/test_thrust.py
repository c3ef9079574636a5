"""Thrust's functions that a thread calls by itself."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel import Kernel, emulate

pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")

SOURCE = """#include <thrust/binary_search.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/pair.h>
#include <thrust/random.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/tuple.h>
__global__ void search(const float *sorted, const float *of, int *x, int n) {
  int i = threadIdx.x;
  thrust::pair<int, int> found = thrust::make_pair(
      int(thrust::lower_bound(thrust::seq, sorted, sorted + n, of[i]) - sorted),
      int(thrust::upper_bound(sorted, sorted + n, of[i], thrust::less<float>()) - sorted));
  x[3 * i] = found.first;
  x[3 * i + 1] = found.second;
  x[3 * i + 2] = thrust::binary_search(thrust::seq, sorted, sorted + n, of[i]);
}
__global__ void loops(int *x) {
  thrust::inclusive_scan(thrust::seq, x, x + 4, x + 4);
  x[8] = thrust::reduce(thrust::seq, x, x + 4, 1, thrust::maximum<int>());
  x[9] = thrust::max_element(thrust::device, x, x + 4) - x;
  thrust::swap(x[0], x[1]);
  x[2] = thrust::get<1>(thrust::make_tuple(7, 8.5f));
}
__global__ void draw(float *x, unsigned *y) {
  thrust::default_random_engine engine(threadIdx.x);
  thrust::uniform_real_distribution<float> within(-1, 1);
  thrust::uniform_int_distribution<int> dice(1, 6);
  x[threadIdx.x] = within(engine);
  y[2 * threadIdx.x] = dice(engine);
  engine.discard(1000);
  y[2 * threadIdx.x + 1] = engine();
}
void host(thrust::device_vector<int> &x) { thrust::sort(x.begin(), x.end()); }
"""


def test_searches() -> None:
    random = np.random.default_rng(1)
    ordered = np.sort(random.integers(0, 40, 100)).astype("float32")
    of = random.integers(-1, 42, 64).astype("float32")
    kernel = Kernel.from_cuda(SOURCE, "search", 1, 64, {"sorted": 100, "of": 64, "x": 192}, n=100)
    found = emulate(kernel, {"sorted": ordered, "of": of, "x": np.zeros(192, "int32")}).array("x").reshape(64, 3)
    np.testing.assert_array_equal(found[:, 0], np.searchsorted(ordered, of, "left"))
    np.testing.assert_array_equal(found[:, 1], np.searchsorted(ordered, of, "right"))
    np.testing.assert_array_equal(found[:, 2], np.isin(of, ordered))


def test_loops() -> None:
    x = np.array([3, 9, 2, 5, 0, 0, 0, 0, 0, 0], "int32")
    found = emulate(Kernel.from_cuda(SOURCE, "loops", 1, 1, {"x": 10}), {"x": x}).array("x")
    np.testing.assert_array_equal(found, [9, 3, 8, 5, 3, 12, 14, 19, 9, 1])


def test_complex_numbers_beside_iterators() -> None:
    """Thrust has a name space of its own that is called cuda."""
    source = """#include <thrust/device_vector.h>
    #include <thrust/iterator/counting_iterator.h>
    #include <thrust/complex.h>
    __global__ void f(float *x) {
      thrust::counting_iterator<int> from(3);
      x[0] = thrust::abs(thrust::complex<float>(from[0], from[1]));
    }"""
    assert emulate(Kernel.from_cuda(source, "f", 1, 1, {"x": 1}), groups="all").array("x")[0] == 5


def test_random_numbers() -> None:
    """The engine is the C++ library's minimal standard one, which Python's whole numbers can follow."""
    found = emulate(Kernel.from_cuda(SOURCE, "draw", 1, 128, {"x": 128, "y": 256}))
    first = [48271 * (seed or 1) % (2**31 - 1) for seed in range(128)]
    second = [48271 * state % (2**31 - 1) for state in first]
    last = [state * pow(48271, 1001, 2**31 - 1) % (2**31 - 1) for state in second]
    np.testing.assert_allclose(found.array("x"), [2 * (state - 1) / 2**31 - 1 for state in first], atol=1e-6)
    dice, drawn = found.array("y").reshape(128, 2).T
    np.testing.assert_array_equal(dice, [1 + (state - 1) * 6 // (2**31 - 2) for state in second])
    np.testing.assert_array_equal(drawn, last)


MAGNITUDES = """#include <complex>
#include <vector>
#include <thrust/complex.h>
using namespace std;
struct Places { std::vector<int> all; };
__global__ void magnitudes(const double *x, double *y) {
  thrust::complex<double> both(x[0], x[1]);
  y[threadIdx.x] = threadIdx.x < 2 ? abs(x[threadIdx.x]) : abs(both);
}
"""


def test_magnitudes_where_a_source_uses_all_of_std() -> None:
    kernel = Kernel.from_cuda(MAGNITUDES, "magnitudes", 1, 3, {"x": 2, "y": 3})
    found = emulate(kernel, {"x": np.array([-3.0, 4.0]), "y": np.zeros(3)}).array("y")
    assert list(found) == pytest.approx([3, 4, 5])
