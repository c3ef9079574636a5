// Covers: integer mixing with shifts, rotations and multiplications that wrap; an array of state; % of unsigned.
// launch: {"kernel": "hashing", "global": [64], "local": [16], "args": [{"name": "seeds", "array": "uint32", "size": 64, "range": [0, 4294967295]}, {"name": "out", "array": "uint32", "size": 64, "output": true}], "exact": true}
#define ROTATED(x, n) (((x) << (n)) | ((x) >> (32 - (n))))
#define N 8
#define M 3

uint murmur(uint h)
{
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ h >> 16;
}

__kernel void hashing(__global const uint *seeds, __global uint *out)
{
    uint state[N];
    state[0] = seeds[get_global_id(0)];
    for (int i = 1; i < N; i++)
        state[i] = 1812433253U * (state[i - 1] ^ (state[i - 1] >> 30)) + i;
    uint result = 0;
    for (int i = 0; i < 3 * N; i++) {
        uint next = state[(i + 1) % N], far = state[(i + M) % N];
        uint y = (state[i % N] & 0x80000000u) | (next & 0x7fffffffu);
        state[i % N] = far ^ (y >> 1) ^ ((y & 1u) ? 0x9908b0dfu : 0u);
        y = state[i % N];
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c5680u;
        y ^= (y << 15) & 0xefc60000u;
        result = ROTATED(result, 5) + murmur(y ^ y >> 18);
    }
    out[get_global_id(0)] = result;
}
