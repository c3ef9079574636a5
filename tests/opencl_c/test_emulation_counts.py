"""Compares what the emulation counts with going through work-items one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel.opencl_c.emulation import Emulation, Machine, Zeros, emulate
from perfmodel.opencl_c.lowered import LoweredKernel
from perfmodel.opencl_c.lowering import lower
from perfmodel.opencl_c.reading import read
from tests.counting_oracle import cycles_of_banks
from tests.covering import examples

GATHER = """
__kernel void k(__global const int *at, __global const {type} *data, __global {type} *out, int start) {{
  __local {type} part[512];
  int i = get_global_id(0);
  if (at[i] >= 0) {{
    out[i] = data[at[i] + start];
    part[at[i]] = out[i];
    out[i] += part[at[i]];
  }}
}}"""
KERNELS = {
    type_: lower(read(GATHER.format(type=type_)), "k")
    for type_ in ("char", "short", "int", "double", "float4", "int16")
}


def blocks(addresses: list[int], size: int, block: int) -> int:
    return len({byte // block for address in addresses for byte in range(address, address + size)})


@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(st.integers(-1, 300), min_size=1, max_size=48),
    st.sampled_from(sorted(KERNELS)),
    st.sampled_from([(8, 32, 32), (32, 128, 32), (5, 64, 16)]),
    st.integers(0, 40),
)
def test_transactions_and_bank_cycles(at: list[int], type_: str, sizes: tuple[int, int, int], start: int) -> None:
    machine = Machine(subgroup_size=sizes[0], transaction_bytes=sizes[1], banks=sizes[2])
    size = {"char": 1, "short": 2, "int": 4, "double": 8, "float4": 16, "int16": 64}[type_]
    arguments: dict[str, Any] = {"at": np.array(at, np.int32), "data": Zeros(400), "out": Zeros(48), "start": start}
    found = emulate(KERNELS[type_], len(at), len(at), arguments, machine=machine)
    subgroups = [at[first : first + sizes[0]] for first in range(0, len(at), sizes[0])]
    active = [[number for number in each if number >= 0] for each in subgroups]
    accesses = {(each.text, each.direction): found.accesses[0, each.number] for each in found.kernel.accesses}
    load = accesses["data[at[i] + start]", "load"]
    local = {direction: accesses["part[at[i]]", direction] for direction in ("load", "store")}
    assert load["executions"] == local["load"]["executions"] == sum(map(len, active))
    assert load["subgroups"] == sum(map(bool, active))
    assert load["bytes"] == size * load["executions"]
    expected = [[(number + start) * size for number in each] for each in active]
    assert load["transactions"] == sum(blocks(each, size, machine.transaction_bytes) for each in expected)
    lanes = [[number * size if number >= 0 else None for number in each] for each in subgroups]
    for direction, each in local.items():
        assert each["bank_cycles"] == sum(
            cycles_of_banks(some, size, machine.banks, machine.bank_bytes, are_shared=direction == "load")
            for some in lanes
        )
    assert found.branches[0, 0].tolist() == [
        len(subgroups),
        sum(0 < len(some) < len(each) for some, each in zip(active, subgroups, strict=True)),
    ]
    touched = {number + start for each in active for number in each}
    footprint = dict(zip(found.variables, found.footprints[0], strict=True))["global", "data"]
    assert footprint["load_bytes"] == footprint["any_bytes"] == len(touched) * size
    assert footprint["load_blocks"] == blocks([number * size for number in touched], size, machine.transaction_bytes)


def strided(stride: int, offset: int = 0) -> Emulation:
    source = """__kernel void k(__global float *a, int s, int o) {
      __local float part[2048]; int l = get_local_id(0); part[l * s] = a[l * s + o]; }"""
    return emulate(lower(read(source), "k"), 64, 64, {"a": Zeros(5000), "s": stride, "o": offset})


@pytest.mark.parametrize(
    ("stride", "offset", "transactions", "cycles"),
    [(1, 0, 8, 2), (1, 3, 10, 2), (2, 0, 16, 4), (3, 0, 24, 2), (8, 0, 64, 16), (32, 0, 64, 64), (0, 0, 2, 2)],
)
def test_strides(stride: int, offset: int, transactions: int, cycles: int) -> None:
    found = strided(stride, offset).accesses[0]
    assert found["transactions"].sum() == transactions
    assert found["bank_cycles"].sum() == cycles
    assert found["bank_conflicts"].sum() == cycles - 2


ARITHMETIC = """
__kernel void k(__global const int *turns, __global int *out, __local int *s) {
  int i = get_global_id(0), x = 0, l = get_local_id(0);
  for (int t = 0; t < turns[i]; t++) {
    if (t == 5) continue;
    x += t * (i % 3 == 0 ? 2 : 1);
    if (x > 40) break;
  }
  out[i] = x;
}"""


@settings(max_examples=examples(15), deadline=None)
@given(st.lists(st.integers(0, 12), min_size=8, max_size=40))
def test_loops_of_different_lengths(turns_: list[int]) -> None:
    groups = len(turns_) // 8
    turns_ = turns_[: groups * 8]
    source = ARITHMETIC.replace(", __local int *s", "")
    arguments: dict[str, Any] = {"turns": np.array(turns_, np.int32), "out": Zeros(len(turns_))}
    program: LoweredKernel = lower(read(source), "k")
    found = emulate(program, len(turns_), 8, arguments, groups="all", machine=Machine(subgroup_size=4))
    expected, tests = [], []
    for i, most in enumerate(turns_):
        x = t = 0
        while t < most:
            if t != 5:
                x += t * (2 if i % 3 == 0 else 1)
                if x > 40:
                    break
            t += 1
        expected.append(x)
        tests.append(t + 1)
    assert found.array("out").tolist() == expected
    load = next(access.number for access in program.accesses if access.text == "turns[i]")
    assert found.accesses["executions"][:, load].tolist() == np.reshape(tests, (groups, 8)).sum(axis=1).tolist()
    longest = np.reshape(tests, (groups, 2, 4)).max(axis=2).sum(axis=1)
    assert found.accesses["subgroups"][:, load].tolist() == longest.tolist()
