// Covers: vectors of three: vload3 and vstore3, halves of them, room of four in an array, as an argument by value.
// launch: {"kernel": "triples", "global": [20], "local": [5], "args": [{"name": "a", "array": "int32", "size": 60}, {"name": "b", "array": "int32", "size": 60, "output": true}, {"name": "c", "array": "int32", "size": 20, "output": true}], "exact": true}
__kernel void triples(__global const int *a, __global int *b, __global int *c)
{
    const int i = get_global_id(0);
    int3 v = vload3(i, a);
    int3 pair[2] = {v, v.zyx};
    v = pair[1] + pair[0] * 2;
    v.lo *= 3;
    vstore3(v, i, b);
    c[i] = (int)sizeof(int3) + v.hi.x + v.even.x;
}
