// The mean of each pixel and its four neighbours, without the border; a tile of 16 x 16 pixels to a work-group.
__kernel void blur(__global float *out, __global const float *image, const int n)
{
    const int x = get_global_id(0) + 1, y = get_global_id(1) + 1;
    const int here = y * (n + 2) + x;
    out[(y - 1) * n + x - 1] = 0.2f * (image[here] + image[here - 1] + image[here + 1]
                                       + image[here - n - 2] + image[here + n + 2]);
}
