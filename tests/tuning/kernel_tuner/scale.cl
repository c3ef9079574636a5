__kernel void scale(__global float *a, const float f, const int n) {
    __local volatile float kept[scratch];
    int i = get_group_id(0) * block_size_x * work + get_local_id(0);
    kept[get_local_id(0) % scratch] = f;
    for (int k = 0; k < work; ++k)
        a[i + k * block_size_x] *= f;
}
