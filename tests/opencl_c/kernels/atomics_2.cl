// Covers: atomics of OpenCL C 2.0, with orders and scopes, and printf, which counts as nothing.
// launch: {"kernel": "atomics_2", "global": [64], "local": [16], "options": ["-cl-std=CL2.0"], "args": [{"name": "a", "array": "int32", "size": 64, "range": [0, 30]}, {"name": "out", "array": "int32", "size": 8, "output": true}, {"name": "u", "array": "uint32", "size": 4, "output": true}], "exact": true}
// launch: {"kernel": "atomics_2", "global": [64], "local": [16], "options": ["-cl-std=CL3.0"], "args": [{"name": "a", "array": "int32", "size": 64, "range": [0, 30]}, {"name": "out", "array": "int32", "size": 8, "output": true}, {"name": "u", "array": "uint32", "size": 4, "output": true}], "exact": true}
__kernel void atomics_2(__global const int *a, volatile __global atomic_int *out, volatile __global uint *u)
{
    const int i = get_global_id(0);
    __local atomic_int count;
    __local int last;
    if (get_local_id(0) == 0) {
        atomic_init(&count, 3);
        last = 0;
    }
    work_group_barrier(CLK_LOCAL_MEM_FENCE);
    atomic_fetch_add(&count, a[i]);
    atomic_fetch_add_explicit(&out[0], a[i], memory_order_relaxed, memory_scope_device);
    atomic_fetch_sub_explicit(&out[1], 2, memory_order_relaxed);
    atomic_fetch_max(&out[2], a[i]);
    atomic_fetch_or_explicit(&out[3], 1 << (a[i] & 7), memory_order_acq_rel, memory_scope_work_group);
    atomic_fetch_xor((volatile __global atomic_uint *)u, a[i]);
    printf("%d of %s\n", a[i], "them");
    work_group_barrier(CLK_LOCAL_MEM_FENCE);
    int expected = -1;
    if (get_local_id(0) == 3 && !atomic_compare_exchange_strong(&count, &expected, 5))
        last = expected;
    work_group_barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 1) {
        atomic_fetch_add(&out[4], last);
        atomic_fetch_min(&out[5], atomic_load(&count));
        atomic_store(&out[6], 77);
        atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_release, memory_scope_device);
    }
    atomic_inc(&u[1]);
}
