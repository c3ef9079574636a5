// Covers: global atomics with results that do not depend on the order, atom_ names, 64-bit and fences.
// launch: {"kernel": "atomics", "global": [64], "local": [16], "args": [{"name": "a", "array": "int32", "size": 64}, {"name": "out", "array": "int32", "size": 8, "output": true}, {"name": "u", "array": "uint32", "size": 2, "output": true}], "exact": true}
__kernel void atomics(__global const int *a, volatile __global int *out, volatile __global uint *u)
{
    __local int best;
    const int i = get_global_id(0);
    if (get_local_id(0) == 0)
        best = -1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    atomic_max(&best, a[i]);
    mem_fence(CLK_LOCAL_MEM_FENCE);
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&out[0], a[i]);
    atomic_sub(&out[1], best);
    atomic_min(&out[2], a[i] - 50);
    atomic_or(&out[3], 1 << (a[i] & 15));
    atomic_and(&out[4], ~a[i]);
    atomic_xor(&out[5], a[i] * i);
    atom_inc(&out[6]);
    atomic_dec(out + 7);
    atomic_max(u, (uint)a[i]);
    if (i == 5)
        u[1] = atomic_cmpxchg(u + 1, u[1], 77u) + atomic_xchg(&u[1], 42u);
}
