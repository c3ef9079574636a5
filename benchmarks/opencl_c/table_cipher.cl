// Covers: family table_cipher; bytes in local memory, two barriers a round, and helpers that mix columns.
// kernel: {"name": "encrypt", "generator": "table_cipher", "tags": ["table:global", "rounds:10", "lsize_0:256"],
//   "global": "4 * n", "local": 256,
//   "args": {"plain": "4*n", "cipher": "4*n", "table": "256", "keys": "44"}, "options": ["-DSPACE=__global"],
//   "assumptions": "n % 64 == 0", "small": {"n": 64}, "sizes": [{"n": 262144}, {"n": 1048576}]}
// kernel: {"name": "encrypt", "generator": "table_cipher", "tags": ["table:constant", "rounds:10", "lsize_0:256"],
//   "global": "4 * n", "local": 256,
//   "args": {"plain": "4*n", "cipher": "4*n", "table": "256", "keys": "44"}, "options": ["-DSPACE=__constant"],
//   "assumptions": "n % 64 == 0", "small": {"n": 64}, "sizes": [{"n": 262144}, {"n": 1048576}]}
// differs: encrypt: f_sync_barrier_local: two a round, as all rounds use the same part of local memory
// differs: encrypt: f_op_uint8_bitwise, f_op_uint8_shift, f_op_uint8_mul: a byte is doubled by a choice, not a product
// differs: encrypt: f_op_int32_bitwise, f_op_int32_shift: operations on single bytes are those of int
#define LSIZE 256
#define ROUNDS 10

uchar doubled(const uchar a)
{
    return a & 0x80 ? a << 1 ^ 0x1b : a << 1;
}

uchar4 mixed(const uchar4 a)
{
    const uchar all = a.x ^ a.y ^ a.z ^ a.w;
    return a ^ all
        ^ (uchar4)(doubled(a.x ^ a.y), doubled(a.y ^ a.z), doubled(a.z ^ a.w), doubled(a.w ^ a.x));
}

__kernel void encrypt(__global const uchar4 *plain, __global uchar4 *cipher, SPACE const uchar *table,
                      __global const uchar4 *keys, const int n)
{
    __local uchar4 columns[LSIZE];
    const size_t place = get_global_id(0), l = get_local_id(0), column = l & 3, first = l - column;
    uchar4 state = plain[place] ^ keys[column];
    for (int round = 1; round < ROUNDS; round++) {
        columns[l] = (uchar4)(table[state.x], table[state.y], table[state.z], table[state.w]);
        barrier(CLK_LOCAL_MEM_FENCE);
        state = (uchar4)(columns[l].x, columns[first + (column + 1) % 4].y, columns[first + (column + 2) % 4].z,
                         columns[first + (column + 3) % 4].w);
        state = mixed(state) ^ keys[4 * round + column];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    columns[l] = (uchar4)(table[state.x], table[state.y], table[state.z], table[state.w]);
    barrier(CLK_LOCAL_MEM_FENCE);
    state = (uchar4)(columns[l].x, columns[first + (column + 1) % 4].y, columns[first + (column + 2) % 4].z,
                     columns[first + (column + 3) % 4].w);
    cipher[place] = state ^ keys[4 * ROUNDS + column];
}
