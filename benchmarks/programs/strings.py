"""Holds searches in texts, and their coding."""

from __future__ import annotations

import base64

import numpy as np

from benchmarks.programs.program import Array, Arrays, Group, Launch, Random, Rng, Zeros, up

GROUP = Group("strings", "strings.cl")
COUNT = np.dtype([("points", "u4"), ("lines", "u4"), ("words", "u4")], align=True)


def letters(text: str) -> Array:
    return np.frombuffer(text.encode(), np.int8)


def found_at(text: Array, pattern: Array) -> Array:
    """Returns at which positions of a text, along its last axis, a pattern begins."""
    places = text.shape[-1] - len(pattern) + 1
    here = np.ones((*text.shape[:-1], places), bool)
    for k, letter in enumerate(pattern):
        here &= text[..., k : k + places] == letter
    return here


@GROUP.case(cpu={"n": 50021}, gpu={"n": 100000007})
def naive_match(rng: Rng, n: int) -> Launch:
    pattern = letters("abacab")

    def reference(a: Arrays) -> Arrays:
        return {"hit": np.pad(found_at(a["text"], pattern).astype(np.uint8), (0, 5))}

    return Launch(
        (up(n, 256),),
        (256,),
        {
            "text": Random("int8", n, 97, 100),
            "pattern": pattern,
            "hit": Zeros("uint8", n),
            "n": np.int32(n),
            "m": np.int32(6),
        },
        reference,
    )


@GROUP.case(cpu={"n": 50021, "chunk": 200}, gpu={"n": 60000011, "chunk": 500})
def kmp_chunks(rng: Rng, n: int, chunk: int) -> Launch:
    pattern = letters("aabaab")
    items = -(-n // chunk)

    def reference(a: Arrays) -> Arrays:
        here = found_at(a["text"], pattern)
        counts = np.add.reduceat(np.pad(here, (0, 5)).astype(np.int32), np.arange(0, n, chunk))
        return {"counts": counts}

    return Launch(
        (up(items, 64),),
        (64,),
        {
            "text": Random("int8", n, 97, 99),
            "pattern": pattern,
            "failure": np.array([0, 1, 0, 1, 2, 3], np.int32),
            "counts": Zeros("int32", items),
            "n": np.int32(n),
            "m": np.int32(6),
            "chunk": np.int32(chunk),
        },
        reference,
    )


def automaton(words: list[str]) -> tuple[Array, Array]:
    """Returns next states of all states and bytes, and how many words end in each state."""
    states = sorted({word[:k] for word in words for k in range(len(word) + 1)}, key=lambda s: (len(s), s))
    number = {state: index for index, state in enumerate(states)}
    following = np.zeros((len(states), 256), np.int16)
    for state in states:
        for letter in range(97, 101):
            suffix = state + chr(letter)
            while suffix not in number:
                suffix = suffix[1:]
            following[number[state], letter] = number[suffix]
    return following, np.array([sum(state.endswith(word) for word in words) for state in states], np.uint8)


@GROUP.case(cpu={"n": 50021, "chunk": 100}, gpu={"n": 50000017, "chunk": 200})
def automaton_count(rng: Rng, n: int, chunk: int) -> Launch:
    words = ["abba", "bab", "dad", "cab", "abacad", "bb"]
    following, outputs = automaton(words)

    def reference(a: Arrays) -> Arrays:
        text = a["text"].view(np.int8)
        return {"total": np.array([sum(int(found_at(text, letters(word)).sum()) for word in words)], np.uint32)}

    return Launch(
        (up(-(-n // chunk), 128),),
        (128,),
        {
            "text": Random("uint8", n, 97, 101),
            "next": following.reshape(-1),
            "outputs": outputs,
            "total": Zeros("uint32", 1),
            "n": np.int32(n),
            "chunk": np.int32(chunk),
            "overlap": np.int32(5),
        },
        reference,
    )


@GROUP.case(cpu={"n": 701, "length": 90}, gpu={"n": 500009, "length": 150})
def horspool_records(rng: Rng, n: int, length: int) -> Launch:
    pattern = letters("cabal").view(np.uint8)
    records = rng.integers(97, 110, (n, length), np.uint8)
    marked = rng.random(n) < 0.5
    place = int(rng.integers(0, length - 5))
    records[marked, place : place + 5] = pattern

    def reference(a: Arrays) -> Arrays:
        here = found_at(records, pattern)
        return {"first": np.where(here.any(1), here.argmax(1), -1).astype(np.int32)}

    return Launch(
        (up(n, 64),),
        (64,),
        {
            "records": records.reshape(-1),
            "pattern": pattern,
            "first": Zeros("int32", n),
            "length": np.int32(length),
            "m": np.int32(5),
            "n": np.int32(n),
        },
        reference,
    )


@GROUP.case(cpu={"line": 120, "lines": 203}, gpu={"line": 400, "lines": 100003})
def run_length(rng: Rng, line: int, lines: int) -> Launch:
    changes = rng.random((lines, line), np.float32) < 0.2
    data = (np.cumsum(changes, 1) * 7 % 251).astype(np.uint8)

    def reference(a: Arrays) -> Arrays:
        out, used = np.zeros((lines, 2 * line), np.uint8), np.zeros(lines, np.int32)
        for index, row in enumerate(data):
            starts = np.flatnonzero(np.diff(row, prepend=row[0] + 1))
            runs = np.stack([np.diff(starts, append=line), row[starts]], 1).reshape(-1)
            out[index, : len(runs)], used[index] = runs, len(runs)
        return {"out": out, "used": used}

    return Launch(
        (up(lines, 64),),
        (64,),
        {
            "in": data.reshape(-1),
            "out": Zeros("uint8", 2 * line * lines),
            "used": Zeros("int32", lines),
            "line": np.int32(line),
            "lines": np.int32(lines),
        },
        reference,
    )


@GROUP.case(cpu={"n": 20011}, gpu={"n": 100000007})
def base64_encode(rng: Rng, n: int) -> Launch:
    return Launch(
        (up(-(-n // 3), 256),),
        (256,),
        {"in": Random("uint8", n, 0, 256), "out": Zeros("int8", 4 * -(-n // 3)), "n": np.int32(n)},
        lambda a: {"out": np.frombuffer(base64.b64encode(a["in"].tobytes()), np.int8)},
    )


@GROUP.case(cpu={"n": 30011}, gpu={"n": 50000017})
def utf8_count(rng: Rng, n: int) -> Launch:
    table = np.frombuffer(b"aaeinrstuxyz    \n\t" + "ßü€".encode(), np.uint8)
    text = table[rng.integers(0, len(table), n, np.uint8)]
    groups = -(-n // 256)

    def reference(a: Arrays) -> Arrays:
        blank = np.isin(text, np.frombuffer(b" \n\t", np.uint8))
        out = np.zeros(groups, COUNT)
        starts = np.arange(0, n, 256)
        words = ~blank & np.concatenate([[True], blank[:-1]])
        for name, here in (("points", (text & 0xC0) != 0x80), ("lines", text == 10), ("words", words)):
            out[name] = np.add.reduceat(here.astype(np.uint32), starts)
        return {"counts": out}

    return Launch((256 * groups,), (256,), {"text": text, "counts": Zeros(COUNT, groups), "n": np.int32(n)}, reference)


@GROUP.case(cpu={"n": 801}, gpu={"n": 8000009})
def parse_numbers(rng: Rng, n: int) -> Launch:
    kinds = [f"{value:>8.{places}f}" for value in rng.uniform(-999, 999, 500) for places in (1, 2, 3)]
    kinds += [f"{value:>8}" for value in range(-50, 50)] + ["  12x4  ", "1.2.3   ", "   --5  "]
    table = np.frombuffer("".join(kinds).encode(), np.int8).reshape(-1, 8)
    chosen = rng.integers(0, len(table), n)

    def reference(a: Arrays) -> Arrays:
        values, states = [], []
        for index in chosen:
            try:
                values.append(float(kinds[index]))
                states.append(2 if "." in kinds[index] else 1)
            except ValueError:
                values.append(np.nan)
                states.append(3)
        return {"values": np.array(values), "state_out": np.array(states, np.uint8)}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "fields": table[chosen].reshape(-1),
            "values": Zeros("float32", n),
            "state_out": Zeros("uint8", n),
            "width": np.int32(8),
            "n": np.int32(n),
        },
        reference,
    )


@GROUP.case(cpu={"n": 1003, "stride": 24}, gpu={"n": 3000017, "stride": 40})
def to_upper_hash(rng: Rng, n: int, stride: int) -> Launch:
    length = rng.integers(0, stride + 1, n, np.uint16)

    def reference(a: Arrays) -> Arrays:
        names = a["names"].reshape(n, stride).copy()
        hashes = np.full(n, 5381, np.uint64)
        for k in range(stride):
            there = k < length
            column = names[:, k]
            column[there & (column >= 97) & (column <= 122)] -= 32
            hashes = np.where(there, hashes * np.uint64(33) + column, hashes)
        return {"names": names, "hash": hashes}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "names": Random("uint8", n * stride, 32, 127),
            "length": length,
            "hash": Zeros("uint64", n),
            "stride": np.int32(stride),
            "n": np.int32(n),
        },
        reference,
    )
