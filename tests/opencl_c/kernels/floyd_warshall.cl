// Covers: one pass of shortest paths; rows and columns of the pass stay as they are, so that nothing races.
// launch: {"kernel": "floyd_warshall", "global": [16, 16], "local": [8, 4], "args": [{"name": "distance", "array": "uint32", "size": 256, "output": true}, {"name": "path", "array": "uint32", "size": 256, "output": true}, {"name": "n", "scalar": "uint32", "value": 16}, {"name": "pass", "scalar": "uint32", "value": 5}], "exact": true}
__kernel void floyd_warshall(__global uint *distance, __global uint *path, const unsigned int n, const unsigned int pass)
{
    size_t x = get_global_id(0), y = get_global_id(1);
    uint direct = distance[y * n + x];
    uint through = distance[y * n + pass] + distance[pass * n + x];
    if (through < direct) {
        distance[y * n + x] = through;
        path[y * n + x] = pass;
    }
}
