// Sparse matrices in the usual formats.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_global_int32_base_atomics : enable

#ifndef T
#define T float
#endif

__kernel void csr_scalar(int nrows, __global const int *row_ptr, __global const int *col_idx, __global const T *vals,
                         __global const T *x, __global T *y)
{
    int row = get_global_id(0);
    if (row >= nrows) return;
    T sum = 0;
    for (int j = row_ptr[row]; j < row_ptr[row + 1]; ++j)
        sum += vals[j] * x[col_idx[j]];
    y[row] = sum;
}

// 32 work-items a row, with a reduction in local memory.
__kernel void csr_vector(__global const int *row_ptr, __global const int *col_idx, __global const float *vals,
                         __global const float *x, __global float *y, int nrows)
{
    volatile __local float sums[128];
    const int lane = get_local_id(0) & 31;
    const int row = get_global_id(0) / 32;
    float sum = 0.0f;
    if (row < nrows) {
        int begin = row_ptr[row], end = row_ptr[row + 1];
        for (int j = begin + lane; j < end; j += 32)
            sum += vals[j] * x[col_idx[j]];
    }
    sums[get_local_id(0)] = sum;
    for (int d = 16; d > 0; d /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        float other = lane < d ? sums[get_local_id(0) + d] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[get_local_id(0)] += other;
    }
    if (lane == 0 && row < nrows)
        y[row] = sums[get_local_id(0)];
}

// Entries that are not there have column -1.
__kernel void ell_spmv(__global const int *cols, __global const double *vals, __global const double *x,
                       __global double *y, int n, int width)
{
    int i = get_global_id(0);
    if (i >= n) return;
    double s = 0;
    for (int k = 0; k < width; k++) {
        int c = cols[k * n + i];
        if (c < 0)
            break;
        s += vals[k * n + i] * x[c];
    }
    y[i] = s;
}

struct triple {
    int row, col;
    int value;
};

// Integers, so that the order of the atomic sums does not matter.
__kernel void coo_atomic(__global const struct triple *entries, int nnz, __global const int *x, __global int *y)
{
    for (int e = get_global_id(0); e < nnz; e += get_global_size(0)) {
        struct triple t = entries[e];
        atomic_add(&y[t.row], t.value * x[t.col]);
    }
}

// Floating-point sums by compare and exchange, as before there were float atomics.
inline void atomic_add_float(volatile __global float *at, float value)
{
    union { uint u; float f; } old, sum;
    do {
        old.f = *at;
        sum.f = old.f + value;
    } while (atomic_cmpxchg((volatile __global uint *)at, old.u, sum.u) != old.u);
}

__kernel void coo_float_cas(int nnz, __global const int *rows, __global const int *cols, __global const float *vals,
                            __global const float *x, __global float *y)
{
    int e = get_global_id(0);
    if (e < nnz)
        atomic_add_float(y + rows[e], vals[e] * x[cols[e]]);
}

#define BS 4
__kernel void bsr_4x4(__global const int *block_ptr, __global const int *block_col, __global const float *blocks,
                      __global const float4 *x, __global float *y, int block_rows)
{
    int row = get_global_id(0);
    int br = row / BS, r = row % BS;
    if (br >= block_rows) return;
    float acc = 0;
    for (int b = block_ptr[br]; b < block_ptr[br + 1]; b++) {
        float4 line = vload4(r, blocks + b * BS * BS);
        acc += dot(line, x[block_col[b]]);
    }
    y[row] = acc;
}

__kernel void jacobi_sweep(__global const int *restrict ptr, __global const int *restrict idx,
                           __global const float *restrict a, __global const float *restrict b,
                           __global const float *restrict x_old, __global float *restrict x_new, float omega, int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    float diagonal = 1.0f, sigma = 0.0f;
    for (int k = ptr[i]; k < ptr[i + 1]; ++k) {
        const int j = idx[k];
        if (j == i)
            diagonal = a[k];
        else
            sigma += a[k] * x_old[j];
    }
    x_new[i] = (1 - omega) * x_old[i] + omega * (b[i] - sigma) / diagonal;
}

// The rows of one level of a lower triangular matrix depend on rows of earlier levels only.
__kernel void sptrsv_level(__global const int *level_rows, int begin, int end, __global const int *ptr,
                           __global const int *idx, __global const double *val, __global const double *rhs,
                           __global double *x)
{
    int at = begin + (int)get_global_id(0);
    if (at >= end) return;
    int row = level_rows[at];
    int last = ptr[row + 1] - 1;      // the diagonal is a row's last entry
    double t = rhs[row];
    for (int k = ptr[row]; k < last; k++)
        t -= val[k] * x[idx[k]];
    x[row] = t / val[last];
}

// How many entries of each row survive a threshold, and the largest of them.
__kernel void csr_count_above(__global const int *ptr, __global const float *val, float threshold,
                              __global uint *kept, __global float *largest, uint n)
{
    uint row = get_global_id(0);
    if (row >= n) return;
    uint count = 0;
    float top = -INFINITY;
    int k = ptr[row];
    while (k < ptr[row + 1]) {
        float v = fabs(val[k++]);
        if (v <= threshold) continue;
        ++count;
        top = max(top, v);
    }
    kept[row] = count;
    largest[row] = count ? top : 0.0f;
}
