// A filter of 7 x 7 weights over an image, to be tuned: how many work-items share a tile, how much of it each of them
// computes, which pixels of a line are those of one work-item, and whether the tile goes by way of local memory.
//
// The tuner defines image_width and image_height (of the result; the image has a margin of REACH on each side),
// block_size_x and block_size_y (work-items of a group), work_x and work_y (pixels of one), interleaved and use_local.

#define REACH 3
#define FILTER (2 * REACH + 1)
#define IMAGE_STRIDE (image_width + 2 * REACH)
#define TILE_X (block_size_x * work_x)
#define TILE_Y (block_size_y * work_y)

// Where in the tile's line the i-th pixel of a work-item is: beside the others of its own, or a group's width away.
#if interleaved
#define AT_X(i) (get_local_id(0) + (i) * block_size_x)
#else
#define AT_X(i) (get_local_id(0) * work_x + (i))
#endif
#define AT_Y(i) (get_local_id(1) + (i) * block_size_y)

#if use_local
#define PIXEL(x, y) tile[y][x]
#else
#define PIXEL(x, y) image[(top + (y)) * IMAGE_STRIDE + left + (x)]
#endif

__kernel void convolve(__global float *restrict out, __global const float *restrict image,
                       __global const float *restrict weights)
{
    const int left = get_group_id(0) * TILE_X, top = get_group_id(1) * TILE_Y;
    float sums[work_y][work_x];
    for (int j = 0; j < work_y; j++)
        for (int i = 0; i < work_x; i++)
            sums[j][i] = 0.0f;
#if use_local
    __local float tile[TILE_Y + 2 * REACH][TILE_X + 2 * REACH];
    for (int y = get_local_id(1); y < TILE_Y + 2 * REACH; y += block_size_y)
        for (int x = get_local_id(0); x < TILE_X + 2 * REACH; x += block_size_x)
            tile[y][x] = image[(top + y) * IMAGE_STRIDE + left + x];
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    for (int dy = 0; dy < FILTER; dy++)
        for (int dx = 0; dx < FILTER; dx++) {
            const float weight = weights[dy * FILTER + dx];
            for (int j = 0; j < work_y; j++)
                for (int i = 0; i < work_x; i++)
                    sums[j][i] += PIXEL(AT_X(i) + dx, AT_Y(j) + dy) * weight;
        }
    for (int j = 0; j < work_y; j++)
        for (int i = 0; i < work_x; i++)
            out[(top + AT_Y(j)) * image_width + left + AT_X(i)] = sums[j][i];
}
