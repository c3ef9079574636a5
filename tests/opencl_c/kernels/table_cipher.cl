// Covers: tables in constant memory, uchar4, rows of a state in local memory, galois multiplication by shifts.
// launch: {"kernel": "cipher", "global": [4, 8], "local": [4, 2], "args": [{"name": "input", "array": "uint8", "size": 128}, {"name": "output", "array": "uint8", "size": 128, "output": true}, {"name": "keys", "array": "uint8", "size": 64}, {"name": "rounds", "scalar": "uint32", "value": 3}], "exact": true}
__constant uchar SBOX[16] = {0x63, 0x7c, 0x77, 0x7b, 0xf2, 0x6b, 0x6f, 0xc5, 0x30, 0x01, 0x67, 0x2b, 0xfe, 0xd7, 0xab, 0x76};
__constant uint SHIFTS[] = {0, 1, 2, 3};

uchar times2(uchar a)
{
    return (uchar)((a << 1) ^ ((a & 0x80) ? 0x1b : 0));
}

uchar4 mixed(uchar4 a)
{
    uchar4 b = (uchar4)(times2(a.x), times2(a.y), times2(a.z), times2(a.w));
    return b ^ a.yzwx ^ b.yzwx ^ a.zwxy ^ a.wxyz;
}

__kernel void cipher(__global const uchar4 *input, __global uchar4 *output, __global const uchar4 *keys, const uint rounds)
{
    __local uchar4 block[2][4];
    const uint row = get_local_id(0), which = get_local_id(1);
    const uint at = get_global_id(1) * 4 + row;
    block[which][row] = input[at] ^ keys[row];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint r = 1; r <= rounds; ++r) {
        uchar4 mine = block[which][(row + SHIFTS[r % 4]) & 3];
        mine = (uchar4)(SBOX[mine.s0 & 15], SBOX[mine.s1 & 15], SBOX[mine.s2 & 15], SBOX[mine.s3 >> 4]);
        barrier(CLK_LOCAL_MEM_FENCE);
        block[which][row] = mixed(mine) ^ keys[r * 4 + row];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    output[at] = block[which][row];
}
