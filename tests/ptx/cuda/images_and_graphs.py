"""CUDA kernels of textbooks: transforms, grids, images, numbers, strings, graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.ptx.cuda.case import ID, case, floats, whole, zeros

# --- transforms, grids, images

case(
    """__global__ void fft(const float2 *x, float2 *z) { __shared__ float2 s[64]; int t = threadIdx.x;
    const float2 *own = x + blockIdx.x * 64;
  s[__brev(t) >> 26] = own[t]; s[__brev(t + 32) >> 26] = own[t + 32]; __syncthreads();
  for (int h = 1; h < 64; h *= 2) { int k = t & (h - 1), i = (t - k) * 2 + k; float c, q;
    sincospif(-(float)k / h, &q, &c);
    float2 u = s[i], v = s[i + h], w = make_float2(v.x * c - v.y * q, v.x * q + v.y * c); __syncthreads();
    s[i] = make_float2(u.x + w.x, u.y + w.y); s[i + h] = make_float2(u.x - w.x, u.y - w.y); __syncthreads(); }
  z[blockIdx.x * 64 + t] = s[t]; z[blockIdx.x * 64 + t + 32] = s[t + 32]; }""",
    2,
    32,
    {"x": floats(2, 64, 2), "z": zeros(2, 64, 2)},
    lambda a: {
        "z": (lambda f: np.stack([f.real, f.imag], -1))(
            np.fft.fft(a["x"][..., 0].astype(complex) + 1j * a["x"][..., 1])
        )
    },
    elements={"x": 128, "z": 128},
    tolerance=1e-4,
)
case(
    """__global__ void walsh(float *x) { __shared__ float s[128]; int t = threadIdx.x;
    s[t] = x[blockIdx.x * 128 + t]; __syncthreads();
  for (int h = 1; h < 128; h *= 2) { float v = s[t ^ h]; __syncthreads(); s[t] = t & h ? v - s[t] : s[t] + v;
    __syncthreads(); }
  x[blockIdx.x * 128 + t] = s[t]; }""",
    2,
    128,
    {"x": floats(2, 128)},
    lambda a: {"x": a["x"].astype(float) @ _hadamard(128)},
    tolerance=1e-5,
)


def _hadamard(n: int) -> NDArray[Any]:
    return np.array([[(-1) ** (i & j).bit_count() for j in range(n)] for i in range(n)])


case(
    """__global__ void planes(const float *x, float *z, int nx, int ny, int nz) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y, step = nx * ny;
  if (i < 1 || j < 1 || i >= nx - 1 || j >= ny - 1) return; const float *p = x + j * nx + i;
    float below = p[0], here = p[step], above;
  for (int k = 1; k < nz - 1; k++) { above = p[(k + 1) * step]; const float *q = p + k * step;
    z[k * step + j * nx + i] = below + above + q[-1] + q[1] + q[-nx] + q[nx] - 6 * here; below = here;
    here = above; } }""",
    (2, 3),
    (16, 8),
    {"x": floats(7, 20, 30), "z": zeros(7, 20, 30)},
    lambda a: {"z": _laplacian(a["x"].astype(float))},
    nx=30,
    ny=20,
    nz=7,
    tolerance=1e-5,
)


def _laplacian(x: NDArray[Any]) -> NDArray[Any]:
    inner = (slice(1, -1),) * 3
    around = sum(np.roll(x, shift, axis)[inner] for axis in range(3) for shift in (-1, 1))
    found = np.zeros_like(x)
    found[inner] = around - 6 * x[inner]
    return found


case(
    """__global__ void red_black(float *x, int n, int colour) { int i = blockIdx.x * 16 + threadIdx.x + 1,
    j = blockIdx.y * 16 + threadIdx.y + 1;
  if (i < n - 1 && j < n - 1 && (i + j) % 2 == colour) x[j * n + i] = 0.25f * (x[j * n + i - 1] + x[j * n + i + 1]
    + x[(j - 1) * n + i] + x[(j + 1) * n + i]); }""",
    (2, 2),
    (16, 16),
    {"x": floats(30, 30)},
    lambda a: {
        "x": np.where(
            np.pad(np.indices((28, 28)).sum(0) % 2 == 1, 1),
            0.25 * sum(np.roll(a["x"], s, d) for s in (-1, 1) for d in (0, 1)),
            a["x"],
        )
    },
    n=30,
    colour=1,
)
case(
    """__global__ void median(const unsigned char *x, unsigned char *z, int n) {
    int i = blockIdx.x * 16 + threadIdx.x, j = blockIdx.y * 16 + threadIdx.y;
  unsigned char v[9]; int c = 0; for (int b = -1; b <= 1; b++) for (int a = -1; a <= 1;
    a++) v[c++] = x[min(max(j + b, 0), n - 1) * n + min(max(i + a, 0), n - 1)];
  for (int p = 0; p < 5; p++) for (int q = p + 1; q < 9; q++) if (v[q] < v[p]) { unsigned char t = v[p];
    v[p] = v[q]; v[q] = t; } z[j * n + i] = v[4]; }""",
    (2, 2),
    (16, 16),
    {"x": whole(32, 32, high=256, dtype="uint8"), "z": zeros(32, 32, dtype="uint8")},
    lambda a: {
        "z": np.median(
            [np.pad(a["x"], 1, "edge")[b : b + 32, c : c + 32] for b in range(3) for c in range(3)], axis=0
        ).astype("uint8")
    },
    n=32,
)
case(
    """__constant__ float cosines[8][8] = {
 {0.35355339f,0.35355339f,0.35355339f,0.35355339f,0.35355339f,0.35355339f,0.35355339f,0.35355339f},
 {0.49039264f,0.41573481f,0.27778512f,0.09754516f,-0.09754516f,-0.27778512f,-0.41573481f,-0.49039264f},
 {0.46193977f,0.19134172f,-0.19134172f,-0.46193977f,-0.46193977f,-0.19134172f,0.19134172f,0.46193977f},
 {0.41573481f,-0.09754516f,-0.49039264f,-0.27778512f,0.27778512f,0.49039264f,0.09754516f,-0.41573481f},
 {0.35355339f,-0.35355339f,-0.35355339f,0.35355339f,0.35355339f,-0.35355339f,-0.35355339f,0.35355339f},
 {0.27778512f,-0.49039264f,0.09754516f,0.41573481f,-0.41573481f,-0.09754516f,0.49039264f,-0.27778512f},
 {0.19134172f,-0.46193977f,0.46193977f,-0.19134172f,-0.19134172f,0.46193977f,-0.46193977f,0.19134172f},
 {0.09754516f,-0.27778512f,0.41573481f,-0.49039264f,0.49039264f,-0.41573481f,0.27778512f,-0.09754516f}};
__global__ void cosine_transform(const float *x, float *z, int n) { __shared__ float s[8][8], r[8][8];
    int a = threadIdx.x, b = threadIdx.y;
  s[b][a] = x[(blockIdx.y * 8 + b) * n + blockIdx.x * 8 + a]; __syncthreads(); float v = 0; for (int k = 0; k < 8;
    k++) v += s[b][k] * cosines[a][k];
  r[b][a] = v; __syncthreads(); v = 0; for (int k = 0; k < 8; k++) v += cosines[b][k] * r[k][a];
    z[(blockIdx.y * 8 + b) * n + blockIdx.x * 8 + a] = v; }""",
    (3, 2),
    (8, 8),
    {"x": floats(16, 24), "z": zeros(16, 24)},
    lambda a: {"z": _cosine_transform(a["x"].astype(float))},
    name="cosine_transform",
    n=24,
    tolerance=1e-5,
)


def _cosine_transform(x: NDArray[Any]) -> NDArray[Any]:
    i = np.arange(8)
    matrix = np.cos(np.pi * (2 * i[None, :] + 1) * i[:, None] / 16) * np.where(i == 0, 8**-0.5, 0.5)[:, None]
    blocks = x.reshape(2, 8, 3, 8)
    return np.asarray(np.einsum("yb,ibjc,xc->iyjx", matrix, blocks, matrix).reshape(16, 24))


# --- numbers, strings, graphs

case(
    f"""__global__ void divisors(const unsigned *x, const unsigned *y, unsigned *gcd, unsigned *root) {{ {ID}
  unsigned a = x[i], b = y[i]; while (b) {{ unsigned r = a % b; a = b; b = r; }} gcd[i] = a;
  unsigned s = 0, v = x[i]; for (unsigned bit = 1u << 14; bit; bit >>= 1) if ((s | bit) * (s | bit) <= v) s |= bit;
    root[i] = s; }}""",
    1,
    128,
    {
        "x": whole(128, low=1, high=2**20, dtype="uint32"),
        "y": whole(128, low=1, high=2**20, dtype="uint32", seed=3),
        "gcd": zeros(128, dtype="uint32"),
        "root": zeros(128, dtype="uint32"),
    },
    lambda a: {"gcd": np.gcd(a["x"], a["y"]), "root": np.sqrt(a["x"].astype(float)).astype("uint32")},
    name="divisors",
)
case(
    """__global__ void checksum(const unsigned char *x, unsigned *z, int n) { __shared__ unsigned table[256];
    unsigned t = threadIdx.x;
  for (unsigned i = t; i < 256; i += blockDim.x) { unsigned c = i; for (int k = 0; k < 8;
    k++) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1; table[i] = c; }
  __syncthreads(); unsigned c = ~0u; for (int k = 0; k < n; k++) c = table[(c ^ x[t * n + k]) & 255] ^ c >> 8;
    z[t] = ~c; }""",
    1,
    64,
    {"x": whole(64, 20, high=256, dtype="uint8"), "z": zeros(64, dtype="uint32")},
    lambda a: {"z": np.array([_crc(row.tobytes()) for row in a["x"]], "uint32")},
    n=20,
)


def _crc(data: bytes) -> int:
    import zlib

    return zlib.crc32(data)


case(
    """__global__ void philox(unsigned *z, unsigned seed) { unsigned c0 = blockIdx.x * blockDim.x + threadIdx.x,
    c1 = 0, c2 = 0, c3 = 0, k0 = seed, k1 = 0;
#pragma unroll
  for (int r = 0; r < 10; r++) { unsigned h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0,
    h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
    c0 = h1 ^ c1 ^ k0; c1 = l1; c2 = h0 ^ c3 ^ k1; c3 = l0; k0 += 0x9E3779B9u; k1 += 0xBB67AE85u; }
  z[blockIdx.x * blockDim.x + threadIdx.x] = c0 ^ c1 ^ c2 ^ c3; }""",
    2,
    64,
    {"z": zeros(128, dtype="uint32")},
    lambda a: {"z": _philox(128, 7)},
    seed=7,
)


def _philox(n: int, seed: int) -> NDArray[Any]:
    mask = np.uint64(2**32 - 1)
    c = [np.arange(n, dtype="uint64"), *(np.zeros(n, "uint64") for _ in range(3))]
    k = [seed, 0]
    for _ in range(10):
        one, other = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        high = [each >> np.uint64(32) for each in (one, other)]
        c = [high[1] ^ c[1] ^ np.uint64(k[0]), other & mask, high[0] ^ c[3] ^ np.uint64(k[1]), one & mask]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return np.asarray(c[0] ^ c[1] ^ c[2] ^ c[3], "uint32")


case(
    """__global__ void edit_distance(const char *a, const char *b, int *z, int n) { __shared__ int d[3][65];
    int t = threadIdx.x + 1;
  for (int s = 0; s <= 2 * n; s++) { int *now = d[s % 3], *one = d[(s + 2) % 3], *two = d[(s + 1) % 3]; int j = s - t;
    if (t == 1 && s <= n) now[0] = s; if (t == s) now[t] = s;
    if (t <= n && j >= 1 && j <= n) now[t] = min(min(one[t], one[t - 1]) + 1,
    two[t - 1] + (a[blockIdx.x * n + t - 1] != b[blockIdx.x * n + j - 1]));
    __syncthreads(); }
  if (t == n) z[blockIdx.x] = d[2 * n % 3][n]; }""",
    3,
    64,
    {
        "a": whole(3, 40, low=97, high=101, dtype="int8"),
        "b": whole(3, 40, low=97, high=101, dtype="int8", seed=3),
        "z": zeros(3, dtype="int32"),
    },
    lambda a: {"z": np.array([_distance(v, w) for v, w in zip(a["a"].tolist(), a["b"].tolist(), strict=True)])},
    n=40,
)


def _distance(a: list[int], b: list[int]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        new = [i + 1]
        for j, y in enumerate(b):
            new.append(min(row[j + 1] + 1, new[j] + 1, row[j] + (x != y)))
        row = new
    return row[-1]


case(
    """__global__ void nearest_centre(const float2 *x, const float2 *centres, int *of, float2 *sums, int *counts,
    int n, int k) {
  extern __shared__ float2 own[]; int i = blockIdx.x * blockDim.x + threadIdx.x; for (int c = threadIdx.x; c < k;
    c += blockDim.x) own[c] = centres[c];
  __syncthreads(); if (i >= n) return; float2 p = x[i]; float least = 1e30f; int best = 0;
  for (int c = 0; c < k; c++) { float dx = p.x - own[c].x, dy = p.y - own[c].y, d = dx * dx + dy * dy;
    if (d < least) { least = d; best = c; } }
  of[i] = best; atomicAdd(&sums[best].x, p.x); atomicAdd(&sums[best].y, p.y); atomicAdd(&counts[best], 1); }""",
    2,
    64,
    {
        "x": floats(120, 2),
        "centres": floats(6, 2, seed=7),
        "of": zeros(120, dtype="int32"),
        "sums": zeros(6, 2),
        "counts": zeros(6, dtype="int32"),
    },
    lambda a: (
        lambda of: {
            "of": of,
            "counts": np.bincount(of, minlength=6),
            "sums": np.stack([np.bincount(of, a["x"][:, c], 6) for c in range(2)], 1),
        }
    )(((a["x"][:, None] - a["centres"]) ** 2).sum(2).argmin(1)),
    elements={"x": 120, "centres": 6, "sums": 6},
    shared=48,
    n=120,
    k=6,
    tolerance=1e-4,
)
case(
    """__global__ void label_components(const int *from, const int *to, int *label, int *changed, int m) {
  int e = blockIdx.x * blockDim.x + threadIdx.x; if (e >= m) return; int a = label[from[e]], b = label[to[e]];
  if (a != b) { atomicMin(&label[max(a, b)], min(a, b)); *changed = 1; } }""",
    1,
    64,
    {
        "from": np.arange(0, 40, 2, dtype="int32"),
        "to": np.arange(1, 41, 2, dtype="int32"),
        "label": np.arange(41, dtype="int32"),
        "changed": zeros(1, dtype="int32"),
    },
    lambda a: {"label": np.r_[np.repeat(np.arange(0, 40, 2), 2), 40], "changed": np.array([1])},
    m=20,
)
case(
    """__global__ void levels_of_tree(const int *parent, int *depth, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
  int d = 0, p = i; while (parent[p] != p) { p = parent[p]; d++; } depth[i] = d; }""",
    2,
    64,
    {"parent": (np.arange(100, dtype="int32") - 1) // 3 * (np.arange(100) > 0), "depth": zeros(100, dtype="int32")},
    lambda a: {"depth": np.array([_depth(i) for i in range(100)])},
    n=100,
)


def _depth(i: int) -> int:
    return 0 if i == 0 else 1 + _depth((i - 1) // 3)


case(
    """__global__ void bilateral(const float *x, float *z, int n, float inverse) {
    int i = blockIdx.x * 16 + threadIdx.x, j = blockIdx.y * 16 + threadIdx.y;
  float s = 0, w = 0, c = x[j * n + i]; for (int b = -2; b <= 2; b++) for (int a = -2; a <= 2; a++) {
    float v = x[min(max(j + b, 0), n - 1) * n + min(max(i + a, 0), n - 1)],
    q = expf(-(a * a + b * b) * 0.125f - (v - c) * (v - c) * inverse); s += q * v; w += q; }
  z[j * n + i] = s / w; }""",
    (2, 2),
    (16, 16),
    {"x": floats(32, 32), "z": zeros(32, 32)},
    lambda a: {"z": _bilateral(a["x"].astype(float), 3.0)},
    n=32,
    inverse=3.0,
    tolerance=1e-5,
)


def _bilateral(x: NDArray[Any], inverse: float) -> NDArray[Any]:
    padded = np.pad(x, 2, "edge")
    s, w = np.zeros_like(x), np.zeros_like(x)
    for b in range(5):
        for a in range(5):
            v = padded[b : b + 32, a : a + 32]
            q = np.exp(-((a - 2) ** 2 + (b - 2) ** 2) * 0.125 - (v - x) ** 2 * inverse)
            s, w = s + q * v, w + q
    return np.asarray(s / w)


case(
    """__global__ void pagerank(const int *starts, const int *from, const float *rank, const int *degree,
    float *next, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; float s = 0;
  for (int k = starts[i]; k < starts[i + 1]; k++) s += rank[from[k]] / degree[from[k]];
    next[i] = 0.15f / n + 0.85f * s; }""",
    1,
    64,
    {
        "starts": np.arange(0, 204, 4, dtype="int32")[:51],
        "from": whole(200, high=50),
        "rank": floats(50),
        "degree": whole(50, low=1, high=9),
        "next": zeros(50),
    },
    lambda a: {"next": 0.15 / 50 + 0.85 * (a["rank"] / a["degree"])[a["from"]].reshape(50, 4).sum(1)},
    n=50,
    tolerance=1e-5,
)
