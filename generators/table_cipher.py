"""Encryption by table look-ups, as AES does it (Panwar et al., Table II; FIPS 197)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import GROUPS_FIT, choice, number, size, work_group
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

# A round uses the half of `columns` that the round before did not, so one barrier a round is enough.
SOURCE = """
uchar4 times_x(const uchar4 a)
{
    return (a << (uchar4)1) ^ ((a >> (uchar4)7) * (uchar4)0x1b);
}

__kernel __attribute__((reqd_work_group_size(LSIZE, 1, 1)))
void table_cipher(__global const uchar4 *plain, __global uchar4 *cipher, TABLE_SPACE const uchar *table,
                  __global const uchar4 *keys, const int n)
{
    __local uchar4 columns[2][LSIZE];
    const int place = get_global_id(0);
    const int column = (int)get_local_id(0) % 4;
    const int first = (int)get_local_id(0) - column;
#ifdef REMAINDERS
    uchar4 state = place < 4 * n ? plain[place] : (uchar4)0;
#else
    uchar4 state = plain[place];
#endif
    state ^= keys[column];
    for (int round = 1; round <= ROUNDS; ++round) {
        __local uchar4 *block = columns[round % 2] + first;
        block[column] = (uchar4)(table[state.x], table[state.y], table[state.z], table[state.w]);
        barrier(CLK_LOCAL_MEM_FENCE);
        state.x = block[column].x;
        state.y = block[(column + 1) % 4].y;
        state.z = block[(column + 2) % 4].z;
        state.w = block[(column + 3) % 4].w;
        if (round < ROUNDS) {
            const uchar all = state.x ^ state.y ^ state.z ^ state.w;
            state ^= (uchar4)all ^ times_x(state ^ state.yzwx);
        }
        state ^= keys[4 * round + column];
    }
#ifdef REMAINDERS
    if (place >= 4 * n)
        return;
#endif
    cipher[place] = state;
}
"""


class TableCipher(KernelGenerator):
    """Four work-items a block of 16 bytes, each a column of four, that meet in local memory in every round.

    A round substitutes each byte by a table's, shifts row r of the block by r columns, mixes each column as polynomials
    over GF(2^8) (the last round does not), and adds a round key. With the table and the round keys of AES this is AES:
    10 rounds for keys of 128 bits, 12 for 192, 14 for 256. Any bytes will do: a byte can't look beyond a table of 256.
    """

    name = "table_cipher"
    summary = "AES-like encryption by table look-ups that depend on data"
    source = "Panwar et al., Table II, AESEncryptDecrypt; FIPS 197"
    limits = "an lsize_0 that is no multiple of 4"
    tags = (
        choice("table", "memory that the table of bytes lies in", "global", "constant"),
        number("rounds", "rounds of the cipher", 10, 12, 14),
        *work_group(256),
        GROUPS_FIT,
        size("n", "blocks of 16 bytes", 2**18, 2**20, 2**22, 2**24),
    )
    checks = (
        ("groups_fit:True", "rounds:1,2,10", "lsize_0:4,12,64", "n:48"),
        ("groups_fit:False", "rounds:1,2,10", "lsize_0:12,64", "n:1,25"),
        ("groups_fit:*", "rounds:12,14", "lsize_0:64", "n:25,48"),
        ("groups_fit:*", "lsize_0:128,256,512", "n:250,256"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize, rounds, is_fit = int(variant["lsize_0"]), int(variant["rounds"]), variant["groups_fit"] == "True"
        return OpenCLProgram(
            SOURCE,
            self.name,
            "4 * n" if is_fit else f"(4 * n + {lsize - 1}) // {lsize} * {lsize}",
            lsize,
            [
                Array("plain", "uint8", "16 * n"),
                Array("cipher", "uint8", "16 * n", is_output=True),
                Array("table", "uint8", 256),
                Array("keys", "uint8", 16 * (rounds + 1)),
                Scalar("n", "int32"),
            ],
            [
                f"-DTABLE_SPACE=__{variant['table']}",
                f"-DROUNDS={rounds}",
                f"-DLSIZE={lsize}",
                *([] if is_fit else ["-DREMAINDERS"]),
            ],
            f"n % {lsize // 4} == 0" if is_fit else "",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": -(-int(variant["lsize_0"]) // 4)}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        return int(variant["lsize_0"]) % 4 == 0

    def inputs(self, kernel: Kernel, random: np.random.Generator) -> Mapping[str, NDArray[Any]]:
        arrays = {a.name: random.integers(256, size=a.size, dtype=np.uint8) for a in kernel.launch().arrays()}
        return {**arrays, "table": random.permutation(256).astype(np.uint8)}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        column, row = np.indices((4, 4))
        keys, rounds = arrays["keys"].reshape(-1, 4, 4), int(kernel.tags["rounds"])
        state = arrays["plain"].reshape(-1, 4, 4) ^ keys[0]
        for done in range(1, rounds + 1):
            state = arrays["table"][state][:, (column + row) % 4, row]
            if done < rounds:
                pairs = state ^ np.roll(state, -1, axis=2)
                state = state ^ np.bitwise_xor.reduce(state, axis=2, keepdims=True) ^ (pairs << 1) ^ (pairs >> 7) * 0x1B
            state = state ^ keys[done]
        return {"cipher": state.ravel()}
