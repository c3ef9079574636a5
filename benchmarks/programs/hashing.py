"""Holds hashes of messages, ciphers, and tables that find keys."""

from __future__ import annotations

import hashlib
import itertools
import struct
import zlib

import numpy as np

from benchmarks.programs.program import Array, Arrays, Group, Launch, Random, Rng, Zeros, up

GROUP = Group("hashing", "hashing.cl")
KEY = np.dtype([("k0", "u4"), ("k1", "u4"), ("k2", "u4"), ("k3", "u4")], align=True)
EMPTY = 2**32 - 1


@GROUP.case(cpu={"n": 301}, gpu={"n": 1000003})
def sha256_block(rng: Rng, n: int) -> Launch:
    """Messages have 55 bytes, so that each is one padded block."""
    text = rng.integers(0, 256, (n, 64), np.uint8)
    text[:, 55] = 0x80
    text[:, 56:] = np.frombuffer(struct.pack(">Q", 55 * 8), np.uint8)

    def reference(a: Arrays) -> Arrays:
        digests = b"".join(hashlib.sha256(line[:55].tobytes()).digest() for line in text)
        return {"digests": np.frombuffer(digests, ">u4").astype(np.uint32)}

    return Launch(
        (up(n, 64),),
        (64,),
        {
            "messages": text.view(">u4").astype(np.uint32).reshape(-1),
            "digests": Zeros("uint32", 8 * n),
            "n": np.int32(n),
        },
        reference,
    )


@GROUP.case(cpu={"n": 2003}, gpu={"n": 10000019}, any_order=("found",))
def md5_search(rng: Rng, n: int) -> Launch:
    sines = np.floor(np.abs(np.sin(np.arange(1, 65))) * 2**32).astype(np.uint32)
    first = 1000000

    def invariant(before: Arrays, after: Arrays) -> None:
        words = (struct.unpack("<I", hashlib.md5(struct.pack("<I", first + i)).digest()[:4])[0] for i in range(n))
        expected = [first + i for i, word in enumerate(words) if word & 0xFF == 0x5A]
        count = int(after["count"][0])
        assert sorted(after["found"][:count].tolist()) == expected, "other keys are found"

    return Launch(
        (up(n, 256),),
        (256,),
        {
            "sines": sines,
            "first": np.uint32(first),
            "wanted": np.uint32(0x5A),
            "mask": np.uint32(0xFF),
            "found": Zeros("uint32", n // 100),
            "count": Zeros("int32", 1),
            "n": np.uint32(n),
        },
        invariant=invariant,
    )


@GROUP.case(cpu={"records": 501}, gpu={"records": 300007})
def crc32_table(rng: Rng, records: int) -> Launch:
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 400, records))]).astype(np.int32)
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> np.uint32(1)) ^ np.where(table & np.uint32(1), np.uint32(0xEDB88320), np.uint32(0))

    def reference(a: Arrays) -> Arrays:
        data = a["data"].tobytes()
        sums = [zlib.crc32(data[start:end]) for start, end in itertools.pairwise(offsets)]
        return {"crc": np.array(sums, np.uint32)}

    return Launch(
        (up(records, 64),),
        (64,),
        {
            "data": Random("uint8", int(offsets[-1]), 0, 256),
            "offsets": offsets,
            "table": table,
            "crc": Zeros("uint32", records),
            "records": np.int32(records),
        },
        reference,
    )


@GROUP.case(cpu={"blocks": 2003}, gpu={"blocks": 10000019})
def aes_round(rng: Rng, blocks: int) -> Launch:
    """The substitution is any permutation of bytes."""
    sbox = rng.permutation(256).astype(np.uint8)
    key = rng.integers(0, 256, 16, np.uint8)

    def reference(a: Arrays) -> Arrays:
        s = sbox[a["in"].reshape(blocks, 4, 4)]
        t = np.stack([np.roll(s[:, :, r], -r, 1) for r in range(4)], 2)
        both = t ^ np.roll(t, -1, 2)
        double = (both << 1) ^ np.where(both & 0x80, 0x1B, 0).astype(np.uint8)
        return {"out": t ^ np.bitwise_xor.reduce(t, 2, keepdims=True) ^ double ^ key.reshape(4, 4)}

    return Launch(
        (up(blocks, 128),),
        (128,),
        {
            "in": Random("uint8", 16 * blocks, 0, 256),
            "out": Zeros("uint8", 16 * blocks),
            "sbox": sbox,
            "key": key.view(KEY)[0],
            "blocks": np.int32(blocks),
        },
        reference,
    )


@GROUP.case(cpu={"n": 2003}, gpu={"n": 20000003})
def xtea_encrypt(rng: Rng, n: int) -> Launch:
    words = np.array([1, 0xDEADBEEF, 77, 0x12345678], np.uint32)

    def reference(a: Arrays) -> Arrays:
        v0, v1 = a["blocks"].reshape(n, 2).T.copy()
        total = 0
        four, five = np.uint32(4), np.uint32(5)
        for _ in range(32):
            v0 = v0 + ((((v1 << four) ^ (v1 >> five)) + v1) ^ np.uint32((total + int(words[total & 3])) % 2**32))
            total = (total + 0x9E3779B9) % 2**32
            mixed = np.uint32((total + int(words[total >> 11 & 3])) % 2**32)
            v1 = v1 + ((((v0 << four) ^ (v0 >> five)) + v0) ^ mixed)
        return {"blocks": np.stack([v0, v1], 1)}

    return Launch(
        (up(n, 256),),
        (256,),
        {
            "blocks": Random("uint32", 2 * n, 0, 2**32),
            "key": words.view(KEY)[0],
            "rounds": np.int32(32),
            "n": np.int32(n),
        },
        reference,
    )


def fnv1a(keys: Array) -> Array:
    h = np.full(len(keys), 2166136261, np.uint32)
    for shift in (0, 8, 16, 24):
        h = (h ^ (keys >> np.uint32(shift) & np.uint32(255))) * np.uint32(16777619)
    return h


@GROUP.case(cpu={"n": 3001, "log": 13}, gpu={"n": 4000037, "log": 23}, any_order=("slots", "values"))
def hash_build(rng: Rng, n: int, log: int) -> Launch:
    """The order decides where a key comes to lie, but whoever looks for it must find it."""
    capacity = 1 << log
    keys = (rng.permutation(n) * 7 + 3).astype(np.uint32)

    def invariant(before: Arrays, after: Arrays) -> None:
        slots, values = after["slots"], after["values"]
        full = slots != EMPTY
        assert np.array_equal(np.sort(slots[full]), np.sort(keys)), "other keys are stored"
        assert np.array_equal(keys[values[full]], slots[full]), "values are not beside their keys"
        home = fnv1a(slots) & np.uint32(capacity - 1)
        at = np.arange(capacity)
        distance = np.where(full, (at - home) % capacity, 0)
        run = np.arange(2 * capacity) - np.maximum.accumulate(np.where(np.tile(full, 2), -1, np.arange(2 * capacity)))
        assert (distance < run[capacity:])[full].all(), "an empty slot lies before a key"

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "keys": keys,
            "slots": np.full(capacity, EMPTY, np.uint32),
            "values": Zeros("uint32", capacity),
            "capacity_mask": np.uint32(capacity - 1),
            "n": np.int32(n),
        },
        invariant=invariant,
    )


def inserted(keys: Array, capacity: int) -> Array:
    """Returns which key lies in each slot, -1 for none, when all keys that still look for a slot move together."""
    slots = np.full(capacity, -1, np.int64)
    waiting = np.arange(len(keys))
    at = (fnv1a(keys) & np.uint32(capacity - 1)).astype(np.int64)
    while len(waiting):
        free = slots[at[waiting]] < 0
        slots[at[waiting[free]]] = waiting[free]
        waiting = waiting[slots[at[waiting]] != waiting]
        at[waiting] = (at[waiting] + 1) % capacity
    return slots


@GROUP.case(cpu={"n": 3001, "stored": 3000, "log": 13}, gpu={"n": 8000009, "stored": 1200000, "log": 21})
def hash_probe(rng: Rng, n: int, stored: int, log: int) -> Launch:
    capacity = 1 << log
    keys = rng.permutation(2 * stored)[:stored].astype(np.uint32)
    holder = inserted(keys, capacity)
    full = holder >= 0

    def reference(a: Arrays) -> Arrays:
        place = np.full(2 * stored, -1, np.int32)
        place[keys] = np.arange(stored)
        return {"answer": place[a["queries"]]}

    return Launch(
        (up(n, 256),),
        (256,),
        {
            "queries": Random("uint32", n, 0, 2 * stored),
            "slots": np.where(full, keys[holder], np.uint32(EMPTY)),
            "values": np.where(full, holder, 0).astype(np.uint32),
            "answer": Zeros("int32", n),
            "capacity_mask": np.uint32(capacity - 1),
            "n": np.int32(n),
        },
        reference,
    )


def bloom_bits(keys: Array, nbits: int, hashes: int) -> Array:
    """Returns the bits of each key, a row a hash."""

    def scramble(x: Array) -> Array:
        x = (x ^ x >> np.uint32(16)) * np.uint32(0x85EBCA6B)
        x = (x ^ x >> np.uint32(13)) * np.uint32(0xC2B2AE35)
        return np.asarray(x ^ x >> np.uint32(16))

    h1, h2 = scramble(keys), scramble(keys ^ np.uint32(0x5BD1E995)) | np.uint32(1)
    return np.stack([(h1 + np.uint32(k) * h2) % np.uint32(nbits) for k in range(hashes)])


def bloom_words(keys: Array, nbits: int, hashes: int) -> Array:
    bits = np.zeros(up(nbits, 32), np.uint8)
    bits[bloom_bits(keys, nbits, hashes)] = 1
    return np.packbits(bits, bitorder="little").view(np.uint32)


@GROUP.case(cpu={"n": 2003, "nbits": 20011}, gpu={"n": 4000037, "nbits": 40000003})
def bloom_insert(rng: Rng, n: int, nbits: int) -> Launch:
    return Launch(
        (up(n, 128),),
        (128,),
        {
            "keys": Random("uint32", n, 0, 2**32),
            "bits": Zeros("uint32", up(nbits, 32) // 32),
            "nbits": np.uint32(nbits),
            "hashes": np.int32(5),
            "n": np.int32(n),
        },
        lambda a: {"bits": bloom_words(a["keys"], nbits, 5)},
    )


@GROUP.case(cpu={"n": 4001, "nbits": 20011}, gpu={"n": 10000019, "nbits": 8000009})
def bloom_query(rng: Rng, n: int, nbits: int) -> Launch:
    words = bloom_words(rng.integers(0, 2**32, nbits // 10, np.uint32), nbits, 4)

    def reference(a: Arrays) -> Arrays:
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        return {"maybe": bits[bloom_bits(a["keys"], nbits, 4)].all(0).astype(np.uint8)}

    return Launch(
        (up(n, 256),),
        (256,),
        {
            "keys": Random("uint32", n, 0, 2**32),
            "bits": words,
            "maybe": Zeros("uint8", n),
            "nbits": np.uint32(nbits),
            "hashes": np.int32(4),
            "n": np.int32(n),
        },
        reference,
    )
