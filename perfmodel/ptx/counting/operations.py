"""One instruction counts as these operations, in the kinds of the feature family ``op``, and as values or indices.

What follows from ids and sizes alone, and ends in addresses or conditions, is index arithmetic, as of the other kinds
of programs. A place in an array is no arithmetic: its index times the bytes of an element, added to the array's start.
Two things look like index arithmetic that no compiler folds into addresses or moves out of loops: whole numbers that a
loop computes anew in each iteration for its conditions alone, and bits that are cut out of data to look something up.
They count as values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from perfmodel.basics.graphs import reached
from perfmodel.counting.called_functions import has_reciprocal, widened
from perfmodel.ptx.code import Code
from perfmodel.ptx.counting.computed_anew import beside_ends, computed_anew
from perfmodel.ptx.counting.contracted import contracted
from perfmodel.ptx.counting.reciprocals import PRODUCTS as PRODUCTS_OF_QUOTIENTS
from perfmodel.ptx.counting.reciprocals import with_known_reciprocals
from perfmodel.ptx.dataflow import (
    ACCESSING,
    LOADS,
    PRODUCTS,
    STORES,
    address_of,
    has_result,
    read,
    registers_in,
    written,
)
from perfmodel.ptx.matrix_shapes import shape_of
from perfmodel.ptx.syntax import Immediate, Instruction, Register, Symbol, Vector

Operations = dict[tuple[str, str], int]
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("add", "sub", "addc", "subc", "sad"), "add"),
    **dict.fromkeys(("mul", "mul24"), "mul"),
    **dict.fromkeys(("mad", "madc", "mad24", "fma", "dp4a", "dp2a"), "madd"),
    **dict.fromkeys(("div", "rcp"), "div"),
    **dict.fromkeys(("and", "or", "xor", "not", "cnot", "lop3", "bfe", "bfi", "prmt", "brev", "copysign"), "bitwise"),
    **dict.fromkeys(("shl", "shr", "shf", "vshl", "vshr"), "shift"),
    **dict.fromkeys(("setp", "set", "testp"), "compare"),
    **{name: name for name in ("min", "max", "sqrt", "rsqrt")},
    **{f"v{name}{parts}": "add" for name in ("add", "sub", "absdiff", "avrg") for parts in ("", "2", "4")},
    **{f"v{name}{parts}": name for name in ("min", "max") for parts in ("", "2", "4")},
    **dict.fromkeys(("ex2", "lg2", "sin", "cos", "tanh"), "native"),
    "rem": "mod",
    "popc": "popcount",
    "clz": "clz",
    "bfind": "clz",
}
EXACT_DIVISION = 2
"""A division that rounds as IEEE says counts as so many of OpenCL's, which may be off a little: two instructions of it
go to the pipe for special functions (MUFU.RCP and FCHK), of the other one. An H200 takes 1.91 to 1.92 times as long."""
_ROUNDED = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
COLLECTIVE = frozenset(("shfl", "vote", "match", "redux"))
_OF_BITS = frozenset(("and", "or", "xor", "lop3", "bfe", "bfi", "prmt", "shr", "shf", "popc", "clz", "bfind", "brev"))
_OF_CHOICES = frozenset(("setp", "set", "selp", "slct", "min", "max", "abs"))
_BEYOND_ADDRESSES = _OF_BITS | _OF_CHOICES
"""Addresses have no room for these, unlike sums, products and shifts to the left."""
_SUMMING = frozenset(("add", "sub", "mov"))
_FENCES = frozenset(("membar", "fence"))
_BEYOND_BLOCKS = ("gl", "gpu", "sys")
_PARTS_OF_FENCE = {"acq_rel": 1.4, "sc": 1.4, "release": 0.7, "acquire": 0.7}
"""An access in some order takes longer than a relaxed one by such parts of what a fence takes (`benchmarks.fences`)."""
_PART_OF_LOAD = 0.25
"""A load in some order takes longer than a relaxed one by this part of what a fence takes, at most."""


def fences_in(instruction: Instruction) -> float:
    """Returns as how many fences beyond the block an instruction takes: 1 for a fence, a part for an access that
    releases what is before it or acquires what is behind, and 0 for all others."""
    if not instruction.has(*_BEYOND_BLOCKS) or instruction.has("proxy"):
        return 0.0
    if instruction.opcode in _FENCES:
        return 1.0
    part = next((part for order, part in _PARTS_OF_FENCE.items() if instruction.has(order)), 0.0)
    return min(part, _PART_OF_LOAD) if instruction.opcode == "ld" else part


def own_operations(instruction: Instruction) -> Operations:
    """Returns what one execution of an instruction does, by kind and type."""
    opcode = instruction.opcode
    if not instruction.types or opcode in ACCESSING or opcode in COLLECTIVE:
        return {}
    type_ = instruction.types[-1]
    if opcode in PRODUCTS:
        return _product(instruction)
    if opcode == "cvt":
        return _conversion(instruction)
    if opcode == "abs":
        return {("fabs" if type_.is_float else "abs", type_.dtype): type_.lanes}
    if type_.kind == "p" or opcode not in _KINDS:
        return {}
    bits = 2 * type_.bits if instruction.has("wide") else type_.bits
    dtype = f"{type_.dtype.rstrip('0123456789')}{bits // type_.lanes}"
    if is_multiplied(instruction):
        return {("mul", widened(dtype)): type_.lanes}
    times = EXACT_DIVISION if opcode == "div" and dtype == "float32" and instruction.has("rn") else 1
    return {(_KINDS[opcode], widened(dtype)): times * type_.lanes}


def _rotates(instruction: Instruction) -> bool:
    """Returns whether an instruction turns the bits of a number round, as hashes do, and no index."""
    return instruction.opcode == "shf" and instruction.has("wrap") and len(set(instruction.operands[1:3])) == 1


def is_multiplied(instruction: Instruction) -> bool:
    """Returns whether a rough quotient has a number for its divisor, by whose reciprocal the assembler multiplies."""
    if instruction.opcode != "div" or not (instruction.has("full") or instruction.has("approx")):
        return False
    divisor = instruction.operands[-1]
    return isinstance(divisor, Immediate) and has_reciprocal(float(divisor.value))


def _product(instruction: Instruction) -> Operations:
    """Returns the multiply-adds of a product of matrices, shared out among the lanes that make it together."""
    m, n, k = shape_of(instruction)
    factor = instruction.types[1].dtype if len(instruction.types) > 2 else "float16"
    lanes = 128 if instruction.opcode == "wgmma.mma_async" else 32
    return {("mma", factor): m * n * k // lanes}


def _conversion(instruction: Instruction) -> Operations:
    to, source = instruction.types[0], instruction.types[-1]
    if to == source and to.is_float:
        kind = next((_ROUNDED[m] for m in instruction.modifiers if m in _ROUNDED), "min")
        return {(kind, to.dtype): 1} if kind != "min" or instruction.has("sat") else {}
    floats = [type_ for type_ in (to, source) if type_.is_float]
    if not floats or to == source:
        return {}
    return {("convert", max(floats, key=lambda each: each.bits // each.lanes).dtype): to.lanes}


class Purposes:
    """Says of a kernel's instructions whether they compute values, or indices and conditions, or nothing that counts.

    Attributes:
        of_data: registers whose values depend on what is in memory.
        of_values: registers whose values end in memory, or are computed with data or with floats.
        beyond_places: registers whose values end in memory or conditions, and not in addresses alone.
        in_places: registers whose values end in addresses, and perhaps elsewhere.
    """

    def __init__(self, code: Code) -> None:
        self.code, self.flow = code, code.dataflow
        self._instructions = [each for block in code.flow.blocks for each in block.instructions]
        self.of_data = self._of_data()
        self.of_values = self._of_values()
        self.beyond_places = self._beyond_places()
        self.in_places = self._in_places()

    def _of_data(self) -> frozenset[str]:
        start = [
            name
            for each in self._instructions
            if (each.opcode in LOADS and not each.has("param"))
            or each.opcode in ("atom", "wgmma.mma_async")
            or each.opcode in COLLECTIVE
            for name in written(each)
        ]

        def following(name: str) -> Iterator[str]:
            for use in self.flow.uses.get(name, ()):
                if use.opcode == "st" and use.has("param"):
                    yield from self._loaded_from(use)
                elif has_result(use):
                    yield from written(use)

        return frozenset(reached(start, following))

    def _loaded_from(self, store: Instruction) -> list[str]:
        """Returns the registers that the parameter of a call, which is stored, is loaded to."""
        address = address_of(store)
        if address is None or not isinstance(address.base, Symbol):
            return []
        name = address.base.name
        loads = [each for each in self._instructions if each.opcode == "ld" and each.has("param")]
        return [
            register
            for load in loads
            if (place := address_of(load)) and isinstance(place.base, Symbol) and place.base.name == name
            for register in written(load)
        ]

    def _of_values(self) -> frozenset[str]:
        start: list[str] = []
        for each in self._instructions:
            if (
                (each.opcode in (*STORES, "red", "atom") and not (each.opcode == "st" and each.has("param")))
                or each.opcode in COLLECTIVE
                or (any(name in self.of_data for name in written(each)) and each.opcode not in ACCESSING)
            ):
                start += self._given(each)
            elif each.opcode not in ACCESSING and (_rotates(each) or any(type_.is_float for type_ in each.types)):
                start += [*written(each), *self._given(each)]  # no index arithmetic, whatever it ends in

        def before(name: str) -> Iterator[str]:
            for definition in self.flow.definitions.get(name, ()):
                if definition.opcode == "ld" and definition.has("param"):
                    for store in self.flow.stored_parameters(definition):
                        yield from self._given(store)
                elif definition.opcode not in ACCESSING:
                    yield from self._given(definition)

        return frozenset(reached(start, before))

    def _beyond_places(self) -> frozenset[str]:
        start = [each.guard.register.name for each in self._instructions if each.guard is not None]
        start += [block.guard.register.name for block in self.code.flow.blocks if block.guard is not None]
        start += [name for b in self.code.flow.blocks if b.index is not None for name in registers_in(b.index)]
        for each in self._instructions:
            if each.opcode in (*STORES, "red", "atom") or each.opcode in COLLECTIVE:
                start += self._given(each)
        return self._with_what_is_before(start)

    def _in_places(self) -> frozenset[str]:
        places = (address_of(each) for each in self._instructions)
        return self._with_what_is_before(
            [name for place in places if place is not None for name in registers_in(place)]
        )

    def _with_what_is_before(self, start: list[str]) -> frozenset[str]:
        """Returns registers with those that their values are computed of."""

        def before(name: str) -> Iterator[str]:
            for definition in self.flow.definitions.get(name, ()):
                if definition.opcode not in ACCESSING:
                    yield from self._given(definition)

        return frozenset(reached(start, before))

    @staticmethod
    def _given(instruction: Instruction) -> list[str]:
        """Returns the registers whose values an instruction works with, without its address."""
        if instruction.opcode == "wgmma.mma_async":  # other operands say where tiles lie
            return [n for operand in instruction.operands if isinstance(operand, Vector) for n in registers_in(operand)]
        operands = instruction.operands[1:] if has_result(instruction) else instruction.operands
        address = address_of(instruction)
        return [name for operand in operands if operand is not address for name in registers_in(operand)]

    def operations(self, instruction: Instruction) -> Operations:
        """Returns what one execution of an instruction does, the product of a multiply-add with its sum."""
        sums, products = self._contracted
        if instruction in self._with_known_reciprocals:
            dtype = instruction.types[-1].dtype
            return {(kind, dtype): times for kind, times in PRODUCTS_OF_QUOTIENTS[dtype].items()}
        own = {} if instruction in products else own_operations(instruction)
        return {("madd", dtype): times for (_, dtype), times in own.items()} if instruction in sums else own

    @cached_property
    def _contracted(self) -> tuple[frozenset[Instruction], frozenset[Instruction]]:
        found = contracted(self.flow)
        return frozenset(found), frozenset(found.values())

    @cached_property
    def _with_known_reciprocals(self) -> frozenset[Instruction]:
        return frozenset(with_known_reciprocals(self.flow))

    def values(self, instruction: Instruction) -> bool:
        """Returns whether an instruction computes values."""
        names = written(instruction)
        if not instruction.types:
            return False
        if not instruction.types[-1].is_float and not any(name in self.beyond_places for name in names):
            has_no_room = instruction.opcode in _BEYOND_ADDRESSES or self._is_carried_on(instruction)
            return has_no_room and any(name in self.of_data for name in names)
        if not any(name in self.of_values or name in self.of_data for name in names):
            return self._is_for_conditions(instruction)
        return any(name in self.of_data for name in names) or not self.is_step(instruction)

    def _is_for_conditions(self, instruction: Instruction) -> bool:
        """Returns whether a loop computes in each iteration what ends in conditions alone, and no counter stands for:
        anew, or beside its end."""
        is_anew = instruction in self._not_counted_on and instruction.opcode not in ("setp", "set")
        if not is_anew and (instruction not in self._beside_ends or self.is_step(instruction)):
            return False
        return not any(name in self.in_places for name in written(instruction))

    @cached_property
    def _beside_ends(self) -> frozenset[Instruction]:
        return beside_ends(self.code)

    @cached_property
    def _not_counted_on(self) -> frozenset[Instruction]:
        return computed_anew(self.code)

    def indices(self, instruction: Instruction) -> bool:
        """Returns whether an instruction that computes no values is index arithmetic, and no part of an address."""
        return self.is_step(instruction) or not (
            self._starts_at_array(instruction) or (self._is_scale(instruction) and self._ends_in_places(instruction))
        )

    def _is_carried_on(self, instruction: Instruction) -> bool:
        """Returns whether an instruction adds to a register that a loop goes on adding to, be it in several copies."""
        if instruction.opcode not in _SUMMING:
            return False

        def following(name: str) -> Iterator[str]:
            return (to for use in self.flow.uses.get(name, ()) if use.opcode in _SUMMING for to in written(use))

        return not reached(written(instruction), following).isdisjoint(read(instruction))

    def is_step(self, instruction: Instruction) -> bool:
        """Returns whether an instruction adds to a register what becomes its next value in a loop."""
        if instruction.opcode not in ("add", "sub") or instruction.types[-1].is_float:
            return False

        def moved_to(name: str) -> Iterator[str]:
            return (to for use in self.flow.uses.get(name, ()) if use.opcode == "mov" for to in written(use))

        return not reached(written(instruction), moved_to).isdisjoint(read(instruction))

    def _starts_at_array(self, instruction: Instruction) -> bool:
        return (
            instruction.opcode in ("add", "sub", "mad", "or")
            and bool(instruction.types)
            and (instruction.types[-1].bits == 64 or instruction.has("wide"))
            and any(name in self._places for name in read(instruction))
        )

    @staticmethod
    def _is_scale(instruction: Instruction) -> bool:
        is_product = instruction.opcode == "mul" and instruction.has("wide")
        is_shift = instruction.opcode in ("shl", "mul") and instruction.types[-1].bits == 64
        return (is_product or is_shift) and isinstance(instruction.operands[-1], Immediate)

    def _ends_in_places(self, instruction: Instruction) -> bool:
        return all(self._starts_at_array(use) for name in written(instruction) for use in self.flow.uses.get(name, ()))

    @cached_property
    def _places(self) -> frozenset[str]:
        """The registers that hold places in arrays."""
        start = [
            name
            for each in self._instructions
            if each.opcode == "cvta"
            or (each.opcode == "mov" and isinstance(each.operands[-1], Symbol))
            or self._loads_pointer(each)
            for name in written(each)
        ]

        def following(name: str) -> Iterator[str]:
            for use in self.flow.uses.get(name, ()):
                if use.opcode in ("add", "sub", "mov", "cvta", "selp", "mad") and use.types[-1].kind != "p":
                    yield from written(use)

        return frozenset(reached(start, following))

    def _loads_pointer(self, instruction: Instruction) -> bool:
        """Returns whether a parameter is loaded that is used as an address as it is."""
        if instruction.opcode != "ld" or not instruction.has("param") or instruction.types[-1].bits != 64:
            return False
        return any(
            use.opcode == "cvta" or self._is_base(use, name)
            for name in written(instruction)
            for use in self.flow.uses.get(name, ())
        )

    @staticmethod
    def _is_base(instruction: Instruction, name: str) -> bool:
        address = address_of(instruction)
        return address is not None and isinstance(address.base, Register) and address.base.name == name
