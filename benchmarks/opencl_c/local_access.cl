// Covers: family local_access; loads, and loads with stores, of every second element of local memory.
// kernel: {"name": "load_local", "generator": "local_access",
//   "tags": ["direction:load", "lstride_0:1", "lsize_0:256"],
//   "global": "n", "local": 256, "args": {"a": "n", "out": "n"}, "options": ["-DSTRIDE=1", "-DPLACES=512"],
//   "assumptions": "n % 256 == 0 and turns >= 1 and turns <= 2", "small": {"n": 256, "m": 3},
//   "sizes": [{"n": 262144, "m": 64}, {"n": 262144, "m": 256}]}
// kernel: {"name": "copy_local", "generator": "local_access",
//   "tags": ["direction:copy", "lstride_0:2", "lsize_0:256"],
//   "global": "n", "local": 256, "args": {"a": "n", "out": "n"}, "options": ["-DSTRIDE=2", "-DPLACES=768"],
//   "assumptions": "n % 256 == 0 and turns >= 1 and turns <= 2", "small": {"n": 256, "m": 3},
//   "sizes": [{"n": 262144, "m": 64}, {"n": 262144, "m": 256}]}
#define LSIZE 256

__kernel void load_local(__global const float *a, __global float *out, const int n, const int m, const int turns)
{
    __local float source[PLACES];
    const int l = get_local_id(0), i = get_global_id(0);
    const float x = a[i];
    for (int place = l; place < PLACES; place += LSIZE)
        source[place] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    float total = x;
    for (int round = 0; round < m; round++)
        for (int turn = 0; turn < turns; turn++) {
            __local const float *first = source + STRIDE * l + 16 * turn;
            total += first[0];
            total += first[2];
            total += first[4];
            total += first[6];
            total += first[8];
            total += first[10];
            total += first[12];
            total += first[14];
        }
    out[i] = total;
}

__kernel void copy_local(__global const float *a, __global float *out, const int n, const int m, const int turns)
{
    __local float source[PLACES], target[PLACES];
    const int l = get_local_id(0), i = get_global_id(0);
    const float x = a[i];
    for (int place = l; place < PLACES; place += LSIZE)
        source[place] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int round = 0; round < m; round++)
        for (int turn = 0; turn < turns; turn++)
#pragma unroll
            for (int j = 0; j < 8; j++) {
                const int place = STRIDE * l + 16 * turn + 2 * j;
                target[place] = source[place];
            }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[i] = target[STRIDE * l];
}
