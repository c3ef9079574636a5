// Covers: family dg; three sums in private memory or a vector of three, and tiles of matrices or of vectors.
// kernel: {"name": "differentiate", "generator": "dg", "tags": ["fetch:none", "layout:transposed", "lsizes:16x16"],
//   "global": ["(elements + 15) // 16 * 16", 64], "local": [16, 16],
//   "args": {"D": "3*64*64", "u": "64 * elements", "result": "3 * 64 * elements"},
//   "small": {"elements": 48}, "sizes": [{"elements": 65536}, {"elements": 262144}]}
// kernel: {"name": "differentiate_vectors", "generator": "dg",
//   "tags": ["fetch:vec", "layout:normal", "lsizes:16x16"],
//   "global": ["elements", 64], "local": [16, 16],
//   "args": {"D": "3*64*64", "u": "64 * elements", "result": "3 * 64 * elements"},
//   "assumptions": "elements % 16 == 0",
//   "small": {"elements": 48}, "sizes": [{"elements": 65536}, {"elements": 262144}]}
// kernel: {"name": "differentiate_matrices", "generator": "dg",
//   "tags": ["fetch:diff", "layout:transposed", "lsizes:16x16"],
//   "global": ["elements", 64], "local": [16, 16],
//   "args": {"D": "3*64*64", "u": "64 * elements", "result": "3 * 64 * elements"},
//   "assumptions": "elements % 16 == 0",
//   "small": {"elements": 48}, "sizes": [{"elements": 65536}, {"elements": 262144}]}
#define NODES 64
#define AXES 3
#define TILE 16

__kernel void differentiate(__global const float *D, __global const float *u, __global float *result,
                            const int elements)
{
    const int element = get_global_id(0), node = get_global_id(1);
    if (element >= elements)
        return;
    __global const float *d0 = D + node * NODES, *d1 = d0 + NODES * NODES, *d2 = d1 + NODES * NODES;
    float x = 0.0f, y = 0.0f, z = 0.0f;
    for (int j = 0; j < NODES; j++) {
        const float value = u[j * elements + element];
        x += d0[j] * value;
        y += d1[j] * value;
        z += d2[j] * value;
    }
    const int size = NODES * elements, place = node * elements + element;
    result[place] = x;
    result[size + place] = y;
    result[2 * size + place] = z;
}

__kernel void differentiate_vectors(__global const float *D, __global const float *u, __global float *result,
                                    const int elements)
{
    __local float tile[TILE][TILE];
    const size_t x = get_local_id(0), y = get_local_id(1), element = get_global_id(0), node = get_global_id(1);
    float derivative[AXES] = {0.0f, 0.0f, 0.0f};
    for (size_t first = 0; first < NODES; first += TILE) {
        tile[y][x] = u[(get_group_id(0) * TILE + y) * NODES + first + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (size_t j = 0; j < TILE; j++) {
            const float value = tile[x][j];
            for (int axis = 0; axis < AXES; axis++)
                derivative[axis] += D[axis * NODES * NODES + node * NODES + first + j] * value;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int axis = 0; axis < AXES; axis++)
        result[((size_t)axis * elements + element) * NODES + node] = derivative[axis];
}

__kernel void differentiate_matrices(__global const float *D, __global const float *u, __global float *result,
                                     const int elements)
{
    __local float tiles[AXES][TILE][TILE];
    const int x = get_local_id(0), y = get_local_id(1), element = get_global_id(0), node = get_global_id(1);
    float3 derivative = 0.0f;
    for (int first = 0; first < NODES; first += TILE) {
        for (int axis = 0; axis < AXES; axis++)
            tiles[axis][y][x] = D[(axis * NODES + node) * NODES + first + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < TILE; j++) {
            const float3 row = (float3)(tiles[0][y][j], tiles[1][y][j], tiles[2][y][j]);
            derivative += row * u[(first + j) * elements + element];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    result[node * elements + element] = derivative.x;
    result[(NODES + node) * elements + element] = derivative.y;
    result[(2 * NODES + node) * elements + element] = derivative.z;
}
