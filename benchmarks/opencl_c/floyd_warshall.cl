// Covers: family floyd_warshall; a branch that data decide.
// kernel: {"name": "floyd_warshall", "generator": "floyd_warshall", "tags": ["dtype:float32", "lsizes:16x16"],
//   "global": ["(n + 15) // 16 * 16", "(n + 15) // 16 * 16"], "local": [16, 16],
//   "args": {"distance": "n*n", "path": "n*n"}, "assumptions": "k < n", "statistics": {"if_16": 0},
//   "small": {"n": 48}, "sizes": [{"n": 4096}, {"n": 8192}]}
// kernel: {"name": "floyd_warshall_whole", "generator": "floyd_warshall", "tags": ["dtype:int32", "lsizes:32x8"],
//   "global": ["n", "n"], "local": [32, 8], "args": {"distance": "n*n", "path": "n*n"},
//   "assumptions": "k < n and n % 32 == 0", "statistics": {"if_29": 0},
//   "small": {"n": 64}, "sizes": [{"n": 4096}, {"n": 8192}]}
__kernel void floyd_warshall(__global float *distance, __global int *path, const int n, const int k)
{
    const int to = get_global_id(0), from = get_global_id(1);
    if (to >= n || from >= n)
        return;
    const float found = distance[from * n + k] + distance[k * n + to];
    if (found < distance[from * n + to]) {
        distance[from * n + to] = found;
        path[from * n + to] = k;
    }
}

__kernel void floyd_warshall_whole(__global int *distance, __global int *path, const int n, const int k)
{
    const size_t pair = get_global_id(1) * n + get_global_id(0);
    const int to_k = distance[get_global_id(1) * n + k];
    const int from_k = distance[(size_t)k * n + get_global_id(0)];
    const int known = distance[pair], found = to_k + from_k;
    // Only where the way by k is shorter.
    if (found < known) {
        distance[pair] = found;
        path[pair] = k;
    }
}
