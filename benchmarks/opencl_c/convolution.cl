// Covers: family convolution; four nested loops over neighbours and colours, and filters copied to local memory.
// kernel: {"name": "convolve", "generator": "convolution", "tags": ["fetch:none", "lsizes:16x16"],
//   "global": ["(n + 15) // 16 * 16", "(n + 15) // 16 * 16", 3], "local": [16, 16, 1],
//   "args": {"m": "9 * (n + 6) * (n + 6)", "f": "441", "r": "9*n*n"},
//   "small": {"n": 32}, "sizes": [{"n": 512}, {"n": 1024}]}
// kernel: {"name": "convolve_local", "generator": "convolution", "tags": ["fetch:filters", "lsizes:16x16"],
//   "global": ["n", "n", 3], "local": [16, 16, 1], "args": {"m": "9 * (n + 6) * (n + 6)", "f": "441", "r": "9*n*n"},
//   "assumptions": "n % 16 == 0", "small": {"n": 32}, "sizes": [{"n": 512}, {"n": 1024}]}
#define COUNT 3
#define COLOURS 3
#define REACH 3
#define WIDTH (2 * REACH + 1)
#define FILTERS (COUNT * WIDTH * WIDTH * COLOURS)

__kernel void convolve(__global const float *m, __global const float *f, __global float *r, const int n)
{
    const int x = get_global_id(1), y = get_global_id(0), image = get_global_id(2), side = n + 2 * REACH;
    if (x >= n || y >= n)
        return;
    for (int filter = 0; filter < COUNT; filter++) {
        float sum = 0.0f;
        for (int dx = -REACH; dx <= REACH; dx++)
            for (int dy = -REACH; dy <= REACH; dy++) {
                __global const float *pixel = m + ((image * side + REACH + x - dx) * side + REACH + y - dy) * COLOURS;
                __global const float *weight = f + ((filter * WIDTH + REACH + dx) * WIDTH + REACH + dy) * COLOURS;
                for (int colour = 0; colour < COLOURS; colour++)
                    sum += pixel[colour] * weight[colour];
            }
        r[((image * COUNT + filter) * n + x) * n + y] = sum;
    }
}

__kernel void convolve_local(__global const float *m, __global const float *f, __global float *r, const int n)
{
    __local float weights[COUNT][WIDTH][WIDTH][COLOURS];
    const int x = get_global_id(1), y = get_global_id(0), image = get_group_id(2), side = n + 2 * REACH;
    const int item = get_local_id(1) * get_local_size(0) + get_local_id(0);
    const int items = get_local_size(0) * get_local_size(1);
    __local float *flat = &weights[0][0][0][0];
    for (int k = item; k < FILTERS; k += items)
        flat[k] = f[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int filter = 0; filter < COUNT; filter++) {
        float sum = 0.0f;
        for (int p = 0; p < WIDTH; p++)
            for (int q = 0; q < WIDTH; q++)
                for (int colour = 0; colour < COLOURS; colour++)
                    sum += m[((image * side + x + 2 * REACH - p) * side + y + 2 * REACH - q) * COLOURS + colour]
                        * weights[filter][p][q][colour];
        r[((image * COUNT + filter) * n + x) * n + y] = sum;
    }
}
