// Covers: family finite_difference; loads of all five points, a tile of the group's size, and a tile with a halo.
// kernel: {"name": "finite_difference", "generator": "finite_difference", "tags": ["fetch:none", "lsizes:16x16"],
//   "global": ["(n + 15) // 16 * 16", "(n + 15) // 16 * 16"], "local": [16, 16],
//   "args": {"u": "(n + 2) * (n + 2)", "f": "n*n"}, "small": {"n": 48}, "sizes": [{"n": 4096}, {"n": 8192}]}
// kernel: {"name": "finite_difference_group", "generator": "finite_difference",
//   "tags": ["fetch:group", "lsizes:16x16"],
//   "global": ["n // 14 * 16", "n // 14 * 16"], "local": [16, 16],
//   "args": {"u": "(n + 2) * (n + 2)", "f": "n*n"}, "assumptions": "n % 14 == 0",
//   "small": {"n": 42}, "sizes": [{"n": 4102}, {"n": 8204}]}
// kernel: {"name": "finite_difference_halo", "generator": "finite_difference",
//   "tags": ["fetch:halo", "lsizes:16x16"],
//   "global": ["n", "n"], "local": [16, 16], "args": {"u": "(n + 2) * (n + 2)", "f": "n*n"},
//   "assumptions": "n % 16 == 0", "small": {"n": 48}, "sizes": [{"n": 4096}, {"n": 8192}]}
#define SIDE 16

float stencil(const float centre, const float north, const float south, const float west, const float east)
{
    return centre * centre + north + south + west + east - 4.0f * centre;
}

__kernel void finite_difference(__global const float *u, __global float *f, const int n)
{
    const int x = get_global_id(0), y = get_global_id(1), pitch = n + 2;
    if (x >= n || y >= n)
        return;
    __global const float *centre = u + (y + 1) * pitch + x + 1;
    f[y * n + x] = stencil(*centre, centre[-pitch], centre[pitch], centre[-1], centre[1]);
}

__kernel void finite_difference_group(__global const float *u, __global float *f, const int n)
{
    __local float tile[SIDE][SIDE];
    const int lx = get_local_id(0), ly = get_local_id(1);
    const int x = get_group_id(0) * (SIDE - 2) + lx, y = get_group_id(1) * (SIDE - 2) + ly;
    tile[ly][lx] = u[y * (n + 2) + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lx == 0 || lx == SIDE - 1 || ly == 0 || ly == SIDE - 1)
        return;
    f[(y - 1) * n + x - 1] =
        stencil(tile[ly][lx], tile[ly - 1][lx], tile[ly + 1][lx], tile[ly][lx - 1], tile[ly][lx + 1]);
}

__kernel void finite_difference_halo(__global const float *u, __global float *f, const int n)
{
    __local float tile[SIDE + 2][SIDE + 2];
    const int lx = get_local_id(0), ly = get_local_id(1), pitch = n + 2;
    __global const float *corner = u + get_group_id(1) * SIDE * pitch + get_group_id(0) * SIDE;
    for (int row = ly; row < SIDE + 2; row += SIDE)
        for (int column = lx; column < SIDE + 2; column += SIDE)
            tile[row][column] = corner[row * pitch + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    const float centre = tile[ly + 1][lx + 1];
    f[get_global_id(1) * n + get_global_id(0)] =
        stencil(centre, tile[ly][lx + 1], tile[ly + 2][lx + 1], tile[ly + 1][lx], tile[ly + 1][lx + 2]);
}
