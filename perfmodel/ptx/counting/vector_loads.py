"""Finds loads from shared memory that the assembler makes one of a vector: neighbours of a thread's, in one basic
block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from perfmodel.ptx.control_flow import ControlFlow
from perfmodel.ptx.counting.access_addresses import AccessAddresses
from perfmodel.ptx.counting.alignment import alignment
from perfmodel.ptx.dataflow import STORES, Dataflow, address_of, written
from perfmodel.ptx.emulation.recording import Addresses
from perfmodel.ptx.syntax import Instruction, Register

WIDTHS = (16, 8)
"""Bytes that one instruction may load for a thread, but for those of single elements."""
_ORDERED = STORES | {"atom", "red", "bar", "barrier", "membar", "fence", "cp", "wgmma.mma_async"}
"""Loads are not moved across these."""

Known = dict[tuple[str, int], dict[int, Instruction]]
ByArray = Mapping[str, Addresses]


def with_vectors(flow: Dataflow, noted: Mapping[Instruction, ByArray]) -> Iterator[tuple[Instruction, ByArray]]:
    """Yields accesses with their addresses by array, in order; those that are one of a vector as the first of them."""
    widened: dict[Instruction, int] = {}
    for base, n_bytes, by_offset in loads_from_one_address(flow.flow):
        offset, first = next(iter(by_offset.items()))
        own = noted.get(first, {})
        residues = {AccessAddresses(each).residue(WIDTHS[0]) for each in own.values() if each.space == "shared"}
        residue = residues.pop() if len(residues) == len(own) == 1 else None
        if residue is not None:
            for vector in vectors(n_bytes, by_offset, residue - offset, alignment(flow, base)):
                widened |= {vector[0]: n_bytes * len(vector), **dict.fromkeys(vector[1:], 0)}
    for instruction, by_array in noted.items():
        size = widened.get(instruction)
        if size is None:
            yield instruction, by_array
        elif size:
            yield instruction, {name: replace(each, n_bytes=size) for name, each in by_array.items()}


def loads_from_one_address(flow: ControlFlow) -> Iterator[tuple[str, int, Mapping[int, Instruction]]]:
    """Yields the loads of single elements from shared memory that may be exchanged: the register of a common address,
    their bytes, and the instructions by how far they lie from it."""
    for block in flow.blocks:
        known: Known = {}
        for instruction in block.instructions:
            if instruction.opcode in _ORDERED:
                yield from _several(known)
                known = {}
            address = address_of(instruction) if _is_single(instruction) else None
            if address is not None and isinstance(address.base, Register):
                key = address.base.name, instruction.types[-1].bits // 8
                known.setdefault(key, {}).setdefault(address.offset, instruction)
            for name in written(instruction):
                yield from _several({key: known.pop(key) for key in list(known) if key[0] == name})
        yield from _several(known)


def _is_single(instruction: Instruction) -> bool:
    is_plain = instruction.opcode == "ld" and instruction.has("shared") and not instruction.has("v2", "v4", "volatile")
    return is_plain and instruction.guard is None and instruction.types[-1].bits in (32, 64)


def _several(known: Known) -> Iterator[tuple[str, int, Mapping[int, Instruction]]]:
    yield from ((name, n_bytes, by_offset) for (name, n_bytes), by_offset in known.items() if len(by_offset) > 1)


def vectors(
    n_bytes: int, by_offset: Mapping[int, Instruction], residue: int, aligned: int
) -> Iterator[tuple[Instruction, ...]]:
    """Yields the loads that are one of a vector, in the order of their addresses.

    Args:
        residue: of the address that offsets are from, by the widest vector's bytes.
        aligned: so many bytes wide are vectors at most, as the assembler knows the residue by no more.
    """
    left = dict(by_offset)
    for size in (each for each in WIDTHS if each <= aligned):
        for offset in sorted(left):
            offsets = range(offset, offset + size, n_bytes)
            if size > n_bytes and (offset + residue) % size == 0 and all(each in left for each in offsets):
                yield tuple(left.pop(each) for each in offsets)
