"""Kernels whose one text is both CUDA C++ and OpenCL C, by macros for what the languages call differently."""

from __future__ import annotations

from dataclasses import dataclass, field

from perfmodel import Kernel

CUDA = """
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define LOCAL __shared__
#define BARRIER __syncthreads()
#define ITEM_X ((int)threadIdx.x)
#define ITEM_Y ((int)threadIdx.y)
#define GROUP_X ((int)blockIdx.x)
#define GROUP_Y ((int)blockIdx.y)
#define ID_X ((int)(blockIdx.x * blockDim.x + threadIdx.x))
#define ID_Y ((int)(blockIdx.y * blockDim.y + threadIdx.y))
#define ADD_TO(place, value) atomicAdd(place, value)
"""
OPENCL = """
#define KERNEL __kernel void
#define GLOBAL __global
#define LOCAL __local
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define ITEM_X ((int)get_local_id(0))
#define ITEM_Y ((int)get_local_id(1))
#define GROUP_X ((int)get_group_id(0))
#define GROUP_Y ((int)get_group_id(1))
#define ID_X ((int)get_global_id(0))
#define ID_Y ((int)get_global_id(1))
#define ADD_TO(place, value) atomic_add(place, value)
"""


@dataclass(frozen=True)
class Twin:
    body: str
    grid: tuple[str, ...]
    block: tuple[int, ...]
    args: dict[str, str]
    sizes: dict[str, int] = field(default_factory=dict)

    def cuda(self) -> Kernel:
        return Kernel.from_cuda(CUDA + self.body, "twin", self.grid, self.block, self.args).at(**self.sizes)

    def opencl(self) -> Kernel:
        items = [f"({grid}) * {block}" for grid, block in zip(self.grid, self.block, strict=True)]
        return Kernel.from_opencl(OPENCL + self.body, "twin", items, self.block, self.args).at(**self.sizes)


TWINS = {
    "copy": Twin(
        body="KERNEL twin(GLOBAL const float *x, GLOBAL float *z, int n) { if (ID_X < n) z[ID_X] = x[ID_X]; }",
        grid=("(n + 255) // 256",),
        block=(256,),
        args={"x": "n", "z": "n"},
        sizes={"n": 10**7},
    ),
    "column sums": Twin(
        body="""KERNEL twin(GLOBAL const float *u, GLOBAL float *s, int n, int m) {
             float t = 0;
             for (int k = 0; k < m; k++) t += u[k * n + ID_X];
             s[ID_X] = t;
           }""",
        grid=("n // 128",),
        block=(128,),
        args={"u": "n * m", "s": "n"},
        sizes={"n": 16384, "m": 1000},
    ),
    "row sums": Twin(
        body="""KERNEL twin(GLOBAL const float *u, GLOBAL float *s, int n, int m) {
             float t = 0;
             for (int k = 0; k < m; k++) t += u[ID_X * m + k];
             s[ID_X] = t;
           }""",
        grid=("n // 128",),
        block=(128,),
        args={"u": "n * m", "s": "n"},
        sizes={"n": 4096, "m": 1001},
    ),
    "strides": Twin(
        body="KERNEL twin(GLOBAL const float *x, GLOBAL float *z, int n, int s) { z[ID_X * s] = x[ID_X * s]; }",
        grid=("n // 256",),
        block=(256,),
        args={"x": "n * s", "z": "n * s"},
        sizes={"n": 1 << 22, "s": 4},
    ),
    "transpose": Twin(
        body="""KERNEL twin(GLOBAL const float *x, GLOBAL float *z, int n) {
             LOCAL float t[16][17];
             t[ITEM_Y][ITEM_X] = x[(GROUP_Y * 16 + ITEM_Y) * n + GROUP_X * 16 + ITEM_X];
             BARRIER;
             z[(GROUP_X * 16 + ITEM_Y) * n + GROUP_Y * 16 + ITEM_X] = t[ITEM_X][ITEM_Y];
           }""",
        grid=("n // 16", "n // 16"),
        block=(16, 16),
        args={"x": "n * n", "z": "n * n"},
        sizes={"n": 4096},
    ),
    "stencil": Twin(
        body="""KERNEL twin(GLOBAL const float *x, GLOBAL float *z, int n) {
             int i = ID_X, j = ID_Y;
             if (i > 0 && j > 0 && i < n - 1 && j < n - 1)
               z[j * n + i] = 0.25f * (x[j * n + i - 1] + x[j * n + i + 1] + x[(j - 1) * n + i] + x[(j + 1) * n + i]);
           }""",
        grid=("n // 32", "n // 8"),
        block=(32, 8),
        args={"x": "n * n", "z": "n * n"},
        sizes={"n": 4096},
    ),
    "tiled product": Twin(
        body="""KERNEL twin(GLOBAL const float *a, GLOBAL const float *b, GLOBAL float *c, int n) {
             LOCAL float A[16][16];
             LOCAL float B[16][16];
             int x = ITEM_X, y = ITEM_Y;
             float s = 0;
             for (int k = 0; k < n; k += 16) {
               A[y][x] = a[ID_Y * n + k + x];
               B[y][x] = b[(k + y) * n + ID_X];
               BARRIER;
               for (int q = 0; q < 16; q++) s += A[y][q] * B[q][x];
               BARRIER;
             }
             c[ID_Y * n + ID_X] = s;
           }""",
        grid=("n // 16", "n // 16"),
        block=(16, 16),
        args={"a": "n * n", "b": "n * n", "c": "n * n"},
        sizes={"n": 1024},
    ),
    "triangle": Twin(
        body="""KERNEL twin(GLOBAL const float *x, GLOBAL float *z, int n) {
             float s = 0;
             for (int k = 0; k <= ID_X; k++) s += x[k];
             z[ID_X] = s;
           }""",
        grid=("n // 256",),
        block=(256,),
        args={"x": "n", "z": "n"},
        sizes={"n": 4096},
    ),
    "gather": Twin(
        body="KERNEL twin(GLOBAL const int *at, GLOBAL const float *x, GLOBAL float *z, int n) "
        "{ z[ID_X] = x[at[ID_X]]; }",
        grid=("16384",),
        block=(256,),
        args={"at": "4194304", "x": "n", "z": "4194304"},
        sizes={"n": 1 << 24},
    ),
    "histogram": Twin(
        body="""KERNEL twin(GLOBAL const int *x, GLOBAL int *h, int n) {
             LOCAL int own[256];
             own[ITEM_X] = 0;
             BARRIER;
             ADD_TO(&own[x[ID_X] & 255], 1);
             BARRIER;
             ADD_TO(&h[ITEM_X], own[ITEM_X]);
           }""",
        grid=("n // 256",),
        block=(256,),
        args={"x": "n", "h": "256"},
        sizes={"n": 1 << 22},
    ),
}
