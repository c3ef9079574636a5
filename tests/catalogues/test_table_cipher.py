"""The table cipher with the table and the round keys of AES is AES: the example vectors of FIPS 197."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import perfmodel as pm
from perfmodel.device import Device
from perfmodel.measuring.protocol import run_launch


def product(a: int, b: int) -> int:
    """Returns the product of two polynomials over GF(2), modulo x^8 + x^4 + x^3 + x + 1 (FIPS 197, section 4.2)."""
    result = 0
    for bit in range(8):
        result ^= a * (b >> bit & 1)
        a = a << 1 ^ (0x11B if a & 0x80 else 0)
    return result


def table() -> list[int]:
    """Returns the S-box: an inverse, then an affine map (section 5.1.1)."""
    inverses = [next((b for b in range(256) if product(a, b) == 1), 0) for a in range(256)]
    turns = [[(b << k | b >> 8 - k) & 0xFF for k in range(5)] for b in inverses]
    return [0x63 ^ a ^ b ^ c ^ d ^ e for a, b, c, d, e in turns]


def round_keys(key: bytes, rounds: int) -> list[int]:
    """Returns the key expansion (section 5.2)."""
    words, length = [list(key[k : k + 4]) for k in range(0, len(key), 4)], len(key) // 4
    sbox, factor = table(), 1
    for k in range(length, 4 * (rounds + 1)):
        word = words[-1]
        if k % length == 0:
            word = [sbox[b] for b in word[1:] + word[:1]]
            word[0] ^= factor
            factor = product(factor, 2)
        elif length > 6 and k % length == 4:
            word = [sbox[b] for b in word]
        words.append([a ^ b for a, b in zip(words[-length], word, strict=True)])
    return [byte for word in words for byte in word]


@pytest.mark.parametrize("place", ["global", "constant"])
@pytest.mark.parametrize(
    ("rounds", "key", "plain", "cipher"),
    [
        (
            10,
            "2b7e151628aed2a6abf7158809cf4f3c",
            "3243f6a8885a308d313198a2e0370734",
            "3925841d02dc09fbdc118597196a0b32",
        ),
        (10, bytes(range(16)).hex(), "00112233445566778899aabbccddeeff", "69c4e0d86a7b0430d8cdb78070b4c55a"),
        (12, bytes(range(24)).hex(), "00112233445566778899aabbccddeeff", "dda97ca4864cdfe06eaf70a0ec0d7191"),
        (14, bytes(range(32)).hex(), "00112233445566778899aabbccddeeff", "8ea2b7ca516745bfeafc49904b496089"),
    ],
)
def test_published_examples(
    place: str, rounds: int, key: str, plain: str, cipher: str, collection: pm.KernelCollection, cpu: Device
) -> None:
    tags = ["table_cipher", f"table:{place}", f"rounds:{rounds}", "lsize_0:64", "n:32"]
    (knl,) = collection.generate_kernels(tags)
    arrays: dict[str, NDArray[np.uint8]] = {
        "plain": np.frombuffer(bytes.fromhex(plain) * 32, np.uint8),
        "table": np.array(table(), np.uint8),
        "keys": np.array(round_keys(bytes.fromhex(key), rounds), np.uint8),
    }
    expected = bytes.fromhex(cipher) * 32
    assert run_launch(knl.launch(), cpu, arrays)["cipher"].tobytes() == expected
    reference = collection.generators["table_cipher"].reference(knl, arrays)
    assert reference["cipher"].tobytes() == expected
