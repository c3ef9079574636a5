// Covers: family row_softmax; loops that stride by the group's size, two trees, and a helper with barriers.
// kernel: {"name": "row_softmax", "generator": "row_softmax", "tags": ["lsize_0:256"],
//   "global": "n * 256", "local": 256, "args": {"a": "n*m", "out": "n*m"}, "assumptions": "m % 256 == 0 and m >= 256",
//   "small": {"n": 3, "m": 512}, "sizes": [{"n": 8192, "m": 2048}, {"n": 65536, "m": 512}]}
// differs: row_softmax: f_op_float32_max: fmax of OpenCL C counts as max, that of a Loopy program as fmax
// differs: row_softmax: f_op_float32_fmax: fmax of OpenCL C counts as max, that of a Loopy program as fmax
#define LSIZE 256

float greatest_of_group(__local float *part, const float value)
{
    const int l = get_local_id(0);
    part[l] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int active = LSIZE / 2; active > 0; active /= 2) {
        if (l < active)
            part[l] = fmax(part[l], part[l + active]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return part[0];
}

float sum_of_group(__local float *part, const float value)
{
    const int l = get_local_id(0);
    part[l] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int active = LSIZE / 2; active > 0; active /= 2) {
        if (l < active)
            part[l] += part[l + active];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return part[0];
}

__kernel void row_softmax(__global const float *a, __global float *out, const int n, const int m)
{
    __local float peaks[LSIZE], sums[LSIZE];
    const int first = get_group_id(0) * m + get_local_id(0), end = (get_group_id(0) + 1) * m;
    float most = -FLT_MAX;
    for (int place = first; place < end; place += LSIZE)
        most = fmax(most, a[place]);
    const float top = greatest_of_group(peaks, most);
    float total = 0.0f;
    for (int place = first; place < end; place += LSIZE)
        total += exp(a[place] - top);
    const float whole = sum_of_group(sums, total);
    for (int place = first; place < end; place += LSIZE)
        out[place] = exp(a[place] - top) / whole;
}
