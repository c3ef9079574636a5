// Covers: all functions of a work-item's place in three dimensions, dimensions beyond the last.
// launch: {"kernel": "work_items", "global": [8, 4, 2], "local": [4, 2, 1], "args": [{"name": "out", "array": "int32", "size": 512, "output": true}], "exact": true}
kernel __attribute__((vec_type_hint(float4))) __attribute__((work_group_size_hint(4, 2, 1)))
void work_items(global int8 *out)
{
    const size_t at = (get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + get_global_id(0);
    int8 r = 0;
    for (uint d = 0; d < get_work_dim(); ++d) {
        r.s0 += get_global_id(d) << (4 * d);
        r.s1 += get_local_id(d) << (4 * d);
        r.s2 += get_group_id(d) << (4 * d);
        r.s3 += get_global_size(d) << (4 * d);
        r.s4 += get_local_size(d) << (4 * d);
        r.s5 += get_num_groups(d) << (4 * d);
        r.s6 += get_global_offset(d);
    }
    r.s7 = get_global_size(3) + 10 * get_local_id(7) + 100 * (get_global_id(1) == get_group_id(1) * get_local_size(1) + get_local_id(1));
    out[at] = r;
}
