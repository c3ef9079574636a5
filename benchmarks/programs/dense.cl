// Dense linear algebra, row-major unless a name says otherwise.

#ifndef BLOCK
#define BLOCK 16
#endif

__kernel void gemm_naive(__global const float *A, __global const float *B, __global float *C, int m, int n, int k)
{
    int row = get_global_id(1);
    int col = get_global_id(0);
    if (row >= m || col >= n)
        return;
    float sum = 0.0f;
    for (int i = 0; i < k; i++)
        sum += A[row * k + i] * B[i * n + col];
    C[row * n + col] = sum;
}

// Tiles with zeros where a tile sticks out of the matrices.
__kernel void gemm_tiled_edges(const int m, const int n, const int k, const float alpha, __global const float *A,
                               __global const float *B, const float beta, __global float *C)
{
    __local float As[BLOCK][BLOCK];
    __local float Bs[BLOCK][BLOCK];
    const int tx = get_local_id(0), ty = get_local_id(1);
    const int col = get_group_id(0) * BLOCK + tx;
    const int row = get_group_id(1) * BLOCK + ty;
    float acc = 0.0f;
    const int tiles = (k + BLOCK - 1) / BLOCK;
    for (int t = 0; t < tiles; ++t) {
        const int ak = t * BLOCK + tx;
        const int bk = t * BLOCK + ty;
        As[ty][tx] = (row < m && ak < k) ? A[row * k + ak] : 0.0f;
        Bs[ty][tx] = (bk < k && col < n) ? B[bk * n + col] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < BLOCK; ++i)
            acc += As[ty][i] * Bs[i][tx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < m && col < n)
        C[row * n + col] = alpha * acc + beta * C[row * n + col];
}

// Each work-item makes four rows of one column, in double precision and column-major.
__kernel void dgemm_four_rows(__global const double *A, __global const double *B, __global double *C, const uint m,
                              const uint n, const uint k)
{
    const uint i = get_global_id(0) * 4;
    const uint j = get_global_id(1);
    if (i >= m || j >= n) return;
    double c0 = 0, c1 = 0, c2 = 0, c3 = 0;
    const uint last = m - 1;
    const uint i1 = min(i + 1, last), i2 = min(i + 2, last), i3 = min(i + 3, last);
    for (uint p = 0; p < k; p++) {
        const double b = B[j * k + p];
        c0 = fma(A[p * m + i], b, c0);
        c1 = fma(A[p * m + i1], b, c1);
        c2 = fma(A[p * m + i2], b, c2);
        c3 = fma(A[p * m + i3], b, c3);
    }
    C[j * m + i] = c0;
    if (i + 1 < m) C[j * m + i + 1] = c1;
    if (i + 2 < m) C[j * m + i + 2] = c2;
    if (i + 3 < m) C[j * m + i + 3] = c3;
}

typedef struct {
    int rows;
    int cols;
    int stride;
    float scale;
} MatrixInfo;

__kernel void gemv_rows(const MatrixInfo info, __global const float *mat, __global const float *x, __global float *y)
{
    int r = get_global_id(0);
    if (r < info.rows) {
        __global const float *line = mat + r * info.stride;
        float dot_product = 0.f;
        for (int c = 0; c < info.cols; ++c)
            dot_product += line[c] * x[c];
        y[r] = info.scale * dot_product;
    }
}

// y = A^T x with a work-group a column block and partial sums in local memory.
__kernel void gemv_transposed(int rows, int cols, __global const float *a, __global const float *x, __global float *y)
{
    __local float partial[8][33];
    int c = get_group_id(0) * 32 + get_local_id(0);
    int slice = get_local_id(1);
    float s = 0;
    if (c < cols)
        for (int r = slice; r < rows; r += 8)
            s = s + a[r * cols + c] * x[r];
    partial[slice][get_local_id(0)] = s;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (slice == 0 && c < cols) {
        for (int k = 1; k < 8; k++)
            s += partial[k][get_local_id(0)];
        y[c] = s;
    }
}

// Only the lower triangle is made and written.
__kernel void syrk_lower(__global const float *a, __global float *c, int n, int k, float alpha, float beta)
{
    int j = get_global_id(0), i = get_global_id(1);
    if (i >= n || j > i)
        return;
    float acc = 0.0f;
    for (int p = 0; p < k; ++p)
        acc += a[i * k + p] * a[j * k + p];
    c[i * n + j] = beta * c[i * n + j] + alpha * acc;
}

// One step of forward substitution for many right-hand sides: row `step` is final, all rows below are updated.
__kernel void trsm_step(__global const double *l, __global double *x, int n, int rhs, int step)
{
    int r = get_global_id(0);
    int i = step + 1 + get_global_id(1);
    if (i >= n || r >= rhs) return;
    x[i * rhs + r] -= l[i * n + step] * (x[step * rhs + r] / l[step * n + step]);
}

// A column of multipliers in each matrix of a batch.
__kernel void lu_multipliers(__global float *matrices, int n, int k)
{
    int i = get_global_id(0) + k + 1;
    __global float *a = matrices + get_global_id(1) * n * n;
    if (i < n)
        a[i * n + k] /= a[k * n + k];
}

__kernel void lu_update(__global float *a, int n, int k)
{
    int j = get_global_id(0) + k + 1;
    int i = get_global_id(1) + k + 1;
    if (i < n && j < n)
        a[i * n + j] -= a[i * n + k] * a[k * n + j];
}

// A work-group factorises one small symmetric matrix of a batch within local memory.
__kernel void cholesky_batch(__global float *matrices, __local float *t, const int n)
{
    __global float *m = matrices + get_group_id(0) * n * n;
    const int me = get_local_id(0), width = get_local_size(0);
    for (int e = me; e < n * n; e += width)
        t[e] = m[e];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; j < n; ++j) {
        if (me == 0)
            t[j * n + j] = sqrt(t[j * n + j]);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = j + 1 + me; i < n; i += width)
            t[i * n + j] = t[i * n + j] / t[j * n + j];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = j + 1 + me; i < n; i += width)
            for (int c = j + 1; c <= i; ++c)
                t[i * n + c] -= t[i * n + j] * t[c * n + j];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int e = me; e < n * n; e += width)
        m[e] = (e % n <= e / n) ? t[e] : 0.0f;
}

// Rotations for disjoint pairs of rows; each work-item turns one column of one pair.
__kernel void givens_rows(__global float *a, __global const int2 *pairs, __global const float2 *cs, int npairs, int n)
{
    int col = get_global_id(0);
    int p = get_global_id(1);
    if (col >= n || p >= npairs) return;
    int2 rows = pairs[p];
    float2 w = cs[p];
    float upper = a[rows.x * n + col];
    float lower = a[rows.y * n + col];
    a[rows.x * n + col] = w.x * upper + w.y * lower;
    a[rows.y * n + col] = w.x * lower - w.y * upper;
}

__kernel void transpose_naive(__global const float *in, __global float *out, int width, int height)
{
    int x = get_global_id(0);
    int y = get_global_id(1);
    if (x < width && y < height)
        out[x * height + y] = in[y * width + x];
}

__kernel void transpose_padded(__global const double *in, __global double *out, int width, int height)
{
    __local double tile[16][16 + 1];
    int x = get_group_id(0) * 16 + get_local_id(0);
    int y = get_group_id(1) * 16 + get_local_id(1);
    if (x < width && y < height)
        tile[get_local_id(1)][get_local_id(0)] = in[y * width + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    x = get_group_id(1) * 16 + get_local_id(0);
    y = get_group_id(0) * 16 + get_local_id(1);
    if (x < height && y < width)
        out[y * height + x] = tile[get_local_id(0)][get_local_id(1)];
}

// The infinity norm of the rows, several work-items a row.
__kernel void row_abs_max(__global const float *a, __global float *norms, int cols, __local float *best)
{
    int row = get_group_id(0);
    int t = get_local_id(0);
    float m = 0.f;
    for (int c = t; c < cols; c += get_local_size(0))
        m = fmax(m, fabs(a[row * cols + c]));
    best[t] = m;
    for (int half_ = get_local_size(0) >> 1; half_ > 0; half_ >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t < half_)
            best[t] = fmax(best[t], best[t + half_]);
    }
    if (t == 0)
        norms[row] = best[0];
}
