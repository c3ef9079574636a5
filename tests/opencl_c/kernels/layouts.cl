// Covers: padding, packed and aligned structs, arrays of structs in local memory, vectors inside structs.
// launch: {"kernel": "layouts", "global": [8], "local": [4], "args": [{"name": "a", "array": "uint8", "size": 88}, {"name": "b", "array": "float32", "size": 64}, {"name": "out", "array": "float32", "size": 8, "output": true}], "exact": false}
typedef struct __attribute__((packed)) {
    uchar tag;
    int value;
    short more[3];
} Packed;

typedef struct {
    float weight;
    float3 direction;
} __attribute__((aligned(32))) Padded;

__kernel void layouts(__global const Packed *a, __global const Padded *b, __global float *out)
{
    __local Packed kept[4];
    const int i = get_global_id(0), l = get_local_id(0);
    kept[l].tag = a[i].tag;
    kept[l].value = a[i].tag + 1;
    kept[l].more[2] = (short)(a[i].more[1] & 15);
    barrier(CLK_LOCAL_MEM_FENCE);
    __local Packed *other = &kept[3 - l];
    out[i] = other->tag * 4 + other->value + other->more[2] + b[i].weight + b[i].direction.z + sizeof(Packed) + sizeof(Padded);
}
