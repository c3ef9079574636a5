// Covers: pointers of no address space, and built-in functions with pointers, in OpenCL C 2.0 and 3.0.
// launch: {"kernel": "generic_pointers", "global": [64], "local": [16], "options": ["-cl-std=CL2.0"], "args": [{"name": "a", "array": "float32", "size": 256}, {"name": "out", "array": "float32", "size": 256, "output": true}, {"name": "h", "array": "float16", "size": 64}, {"name": "tile", "local_bytes": 256}]}
// launch: {"kernel": "generic_pointers", "global": [64], "local": [16], "options": ["-cl-std=CL3.0"], "args": [{"name": "a", "array": "float32", "size": 256}, {"name": "out", "array": "float32", "size": 256, "output": true}, {"name": "h", "array": "float16", "size": 64}, {"name": "tile", "local_bytes": 256}]}
global const float weights[4] = {0.5f, 0.25f, 2.0f, 3.0f};

float weighted(const float *v)
{
    static const int order[4] = {2, 0, 3, 1};
    float sum = 0;
    for (int k = 0; k < 4; k++)
        sum += weights[order[k]] * v[k];
    return sum;
}

float total(const float *v)
{
    float4 x = vload4(0, v);
    return x.x + x.y + x.z + x.w;
}

void both(float *first, float *second, float x)
{
    *first = fract(x, second);
}

typedef struct { float sums[2]; int count; } state;

void add(float *sums, float x)
{
    sums[0] += x;
    *++sums *= x + 1;
}

void step(state *s, const float *a)
{
    add(s->sums, get_local_id(0) > 3 ? a[0] : *(a + 1));
    s->count++;
}

__kernel void generic_pointers(__global const float *a, __global float *out, __global const half *h,
                               __local float *tile)
{
    const int i = get_global_id(0), l = get_local_id(0);
    float own[4] = {1, 2, 3, (float)i};
    vstore4(vload4(i, a), l, tile);
    int exponent;
    float whole, sine, cosine;
    const float mantissa = frexp(tile[4 * l], &exponent);
    const float part = modf(3 * tile[4 * l + 1], &whole);
    sine = sincos(tile[4 * l + 2], &cosine);
    float first, second;
    both(&first, &second, 7 * tile[4 * l + 3]);
    both(tile + 4 * l, out + 4 * i + 1, 5 * tile[4 * l]);
    state s = {{0, 1}, 0};
    for (int k = 0; k < 3; k++)
        step(&s, a + 4 * i + k);
    out[4 * i] = s.sums[0] + s.sums[1] + s.count + total(own) + total(a + 4 * i) + total(tile + 4 * l);
    out[4 * i + 2] = mantissa + exponent + part + whole + sine + cosine + first + second;
    out[4 * i + 3] = vload_half(i, h) + weighted(own) + total(weights);
}
