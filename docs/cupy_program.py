"""A program that uses CuPy and knows nothing of perfmodel; `perfmodel run docs/cupy_program.py` profiles it.

It adds multiples of a matrix to another a few times and adds up its rows: `python docs/cupy_program.py [ROWS]`.
"""

import sys

import cupy
import numpy as np

COLUMNS, THREADS = 1024, 256
SAXPY = """
extern "C" __global__ void saxpy(const float *x, float *y, const float a, const int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += a * x[i];
}
"""
ROW_SUM = """
template <typename T> __global__ void row_sum(const T *matrix, T *sums, int columns)
{
    extern __shared__ unsigned char memory[];
    T *part = reinterpret_cast<T *>(memory);
    T sum = 0;
    for (int column = threadIdx.x; column < columns; column += blockDim.x)
        sum += matrix[blockIdx.x * columns + column];
    part[threadIdx.x] = sum;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = part[0];
}
"""


def main(rows: int) -> float:
    n = rows * COLUMNS
    saxpy = cupy.RawKernel(SAXPY, "saxpy")
    row_sum = cupy.RawModule(code=ROW_SUM, name_expressions=["row_sum<float>"]).get_function("row_sum<float>")
    x = cupy.asarray(np.linspace(0, 1, n, dtype=np.float32))
    y = cupy.zeros(n, dtype=cupy.float32)
    sums = cupy.empty(rows, dtype=cupy.float32)
    for _ in range(4):
        saxpy(((n + THREADS - 1) // THREADS,), (THREADS,), (x, y, np.float32(0.25), np.int32(n)))
    row_sum((rows,), (THREADS,), (y, sums, np.int32(COLUMNS)), shared_mem=4 * THREADS)
    return float(cupy.asnumpy(sums).sum())


if __name__ == "__main__":
    print(f"sum: {main(int(sys.argv[1]) if len(sys.argv) > 1 else 4096):.1f}")
