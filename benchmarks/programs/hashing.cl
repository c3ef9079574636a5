// Hashes, ciphers and tables of keys.

__constant uint sha_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2};

#define ROTR(x, n) (((x) >> (n)) | ((x) << (32 - (n))))
#define CH(x, y, z) (((x) & (y)) ^ (~(x) & (z)))
#define MAJ(x, y, z) (((x) & (y)) ^ ((x) & (z)) ^ ((y) & (z)))

// One block of 64 bytes a message, given as big-endian words of padded text.
__kernel void sha256_block(__global const uint *messages, __global uint *digests, int n)
{
    int id = get_global_id(0);
    if (id >= n) return;
    uint w[64];
    for (int i = 0; i < 16; i++)
        w[i] = messages[id * 16 + i];
    for (int i = 16; i < 64; i++) {
        uint s0 = ROTR(w[i - 15], 7) ^ ROTR(w[i - 15], 18) ^ (w[i - 15] >> 3);
        uint s1 = ROTR(w[i - 2], 17) ^ ROTR(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    const uint h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint s[8];
    for (int i = 0; i < 8; i++) s[i] = h[i];
    for (int i = 0; i < 64; i++) {
        uint t1 = s[7] + (ROTR(s[4], 6) ^ ROTR(s[4], 11) ^ ROTR(s[4], 25)) + CH(s[4], s[5], s[6]) + sha_k[i] + w[i];
        uint t2 = (ROTR(s[0], 2) ^ ROTR(s[0], 13) ^ ROTR(s[0], 22)) + MAJ(s[0], s[1], s[2]);
        for (int k = 7; k > 0; k--) s[k] = s[k - 1];
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        digests[id * 8 + i] = h[i] + s[i];
}

__constant uchar md5_turn[16] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};

// Short keys of a search: the block is made of a counter, and the digest's first word compared.
__kernel void md5_search(__constant uint *sines, uint first, uint wanted, uint mask, __global uint *found,
                         __global int *count, uint n)
{
    uint id = get_global_id(0);
    if (id >= n) return;
    uint m[16] = {first + id, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0};
    uint a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476;
    for (int i = 0; i < 64; i++) {
        uint f;
        int g;
        switch (i >> 4) {
        case 0: f = (b & c) | (~b & d); g = i; break;
        case 1: f = (d & b) | (~d & c); g = (5 * i + 1) & 15; break;
        case 2: f = b ^ c ^ d; g = (3 * i + 5) & 15; break;
        default: f = c ^ (b | ~d); g = (7 * i) & 15;
        }
        uint t = d;
        d = c;
        c = b;
        b = b + rotate(a + f + sines[i] + m[g], (uint)md5_turn[(i >> 4) * 4 + (i & 3)]);
        a = t;
    }
    a += 0x67452301;
    if ((a & mask) == wanted)
        found[atomic_inc(count)] = first + id;
}

__kernel void crc32_table(__global const uchar *data, __global const int *offsets, __global const uint *table,
                          __global uint *crc, int records)
{
    __local uint t[256];
    for (int i = get_local_id(0); i < 256; i += get_local_size(0))
        t[i] = table[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    int r = get_global_id(0);
    if (r >= records) return;
    uint c = ~0u;
    for (int i = offsets[r]; i < offsets[r + 1]; i++)
        c = t[(c ^ data[i]) & 0xff] ^ (c >> 8);
    crc[r] = ~c;
}

typedef struct { uint k0, k1, k2, k3; } Key;

// One round of a cipher with a state of 16 bytes: substitute, shift rows, mix columns, add the key.
inline uchar times2(uchar x) { return (x << 1) ^ ((x & 0x80) ? 0x1b : 0); }

__kernel void aes_round(__global const uchar16 *in, __global uchar16 *out, __constant uchar *sbox, const Key key,
                        int blocks)
{
    int i = get_global_id(0);
    if (i >= blocks) return;
    uchar s[16], t[16];
    vstore16(in[i], 0, s);
    for (int c = 0; c < 4; c++)
        for (int r = 0; r < 4; r++)
            t[4 * c + r] = sbox[s[4 * ((c + r) % 4) + r]];
    const uint words[4] = {key.k0, key.k1, key.k2, key.k3};
    for (int c = 0; c < 4; c++) {
        uchar all = t[4 * c] ^ t[4 * c + 1] ^ t[4 * c + 2] ^ t[4 * c + 3];
        for (int r = 0; r < 4; r++) {
            uchar mixed = t[4 * c + r] ^ all ^ times2(t[4 * c + r] ^ t[4 * c + (r + 1) % 4]);
            s[4 * c + r] = mixed ^ (uchar)(words[c] >> (8 * r));
        }
    }
    out[i] = vload16(0, s);
}

__kernel void xtea_encrypt(__global uint2 *blocks, Key key, int rounds, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    const uint k[4] = {key.k0, key.k1, key.k2, key.k3};
    uint v0 = blocks[i].x, v1 = blocks[i].y, sum = 0;
    for (int r = 0; r < rounds; r++) {
        v0 += (((v1 << 4) ^ (v1 >> 5)) + v1) ^ (sum + k[sum & 3]);
        sum += 0x9E3779B9;
        v1 += (((v0 << 4) ^ (v0 >> 5)) + v0) ^ (sum + k[(sum >> 11) & 3]);
    }
    blocks[i] = (uint2)(v0, v1);
}

uint fnv1a(uint key)
{
    uint h = 2166136261u;
    for (int b = 0; b < 4; b++) {
        h ^= key & 0xff;
        h *= 16777619u;
        key >>= 8;
    }
    return h;
}

#define EMPTY 0xffffffffu
__kernel void hash_build(__global const uint *keys, __global uint *slots, __global uint *values, uint capacity_mask, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    uint key = keys[i];
    uint at = fnv1a(key) & capacity_mask;
    while (true) {
        uint old = atomic_cmpxchg(&slots[at], EMPTY, key);
        if (old == EMPTY || old == key) {
            values[at] = i;
            return;
        }
        at = (at + 1) & capacity_mask;
    }
}

__kernel void hash_probe(__global const uint *queries, __global const uint *slots, __global const uint *values,
                         __global int *answer, uint capacity_mask, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    uint key = queries[i], at = fnv1a(key) & capacity_mask;
    int found = -1;
    uint seen;
    while ((seen = slots[at]) != EMPTY) {
        if (seen == key) {
            found = values[at];
            break;
        }
        at = (at + 1) & capacity_mask;
    }
    answer[i] = found;
}

inline uint scramble(uint x)
{
    x ^= x >> 16;
    x *= 0x85ebca6b;
    x ^= x >> 13;
    x *= 0xc2b2ae35;
    return x ^ (x >> 16);
}

__kernel void bloom_insert(__global const uint *keys, __global uint *bits, uint nbits, int hashes, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    uint h1 = scramble(keys[i]), h2 = scramble(keys[i] ^ 0x5bd1e995) | 1;
    for (int k = 0; k < hashes; k++) {
        uint bit = (h1 + k * h2) % nbits;
        atomic_or(&bits[bit / 32], 1u << (bit % 32));
    }
}

__kernel void bloom_query(__global const uint *keys, __global const uint *bits, __global uchar *maybe, uint nbits,
                          int hashes, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    uint h1 = scramble(keys[i]), h2 = scramble(keys[i] ^ 0x5bd1e995) | 1;
    for (int k = 0; k < hashes; k++) {
        uint bit = (h1 + k * h2) % nbits;
        if (!(bits[bit / 32] >> (bit % 32) & 1)) {
            maybe[i] = 0;
            return;
        }
    }
    maybe[i] = 1;
}
