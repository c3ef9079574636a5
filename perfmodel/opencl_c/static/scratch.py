"""Private arrays lie in memory where a compiler doesn't know which element an access is of, and else in registers.

The GPU makers' names of such memory are local (NVIDIA) and scratch (AMD) memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.origins import Origin, Origins, setting
from perfmodel.opencl_c.static.liveness import WORD_BYTES, components_read, words_at_once
from perfmodel.opencl_c.types import Array, Vector

REGISTERS = 255
"""Words that a work-item of today's GPUs can hold in registers."""


@dataclass(frozen=True)
class ScratchArray:
    """Tells what of a private array lies in memory.

    Attributes:
        bytes: of one work-item's.
        share: the part of the array that this is; a compiler spills no more of one than registers have no room for.
        is_spilled: whether it lies there for want of registers, while the compiler knows every element's place.
    """

    bytes: int
    share: float = 1.0
    is_spilled: bool = False


def scratch_arrays(kernel: low.LoweredKernel) -> dict[str, ScratchArray]:
    """Returns what of private arrays lies in memory, by the arrays' names.

    An index is known if it follows from numbers, and from counters of loops that are unrolled as their ends are known,
    be it by way of a table of numbers.
    Arrays whose indices are known lie there as far as registers have no room for them, the largest first.
    """
    private = {each.name: each.type.size for each in kernel.objects if each.space == "private"}
    if not private:
        return {}
    found: set[str] = set()
    origins = Origins(kernel.body)
    unknown = _stepped_in_open_loops(kernel, origins)
    tables = _tables(kernel, origins, unknown)
    for statement in walks.simple_statements(kernel.body):
        for node in walks.accesses_of(statement):
            if node.access.space != "private" or node.access.variable in found:
                continue
            if not _is_known(node.pointer, origins, unknown, tables):
                found |= set(private) if node.access.variable is None else {node.access.variable}
    found &= private.keys()
    in_memory = {name: ScratchArray(private[name]) for name in found}
    room = WORD_BYTES * max(REGISTERS - words_at_once(kernel), 0)
    held = {name: size for name, size in _held(kernel, tables).items() if name not in found}
    for name in sorted(held, key=lambda name: (held[name], name)):
        room -= held[name]
        if room < 0:
            spilled = min(-room, held[name])
            in_memory[name] = ScratchArray(spilled, spilled / private[name], is_spilled=True)
    return dict(sorted(in_memory.items()))


def words_in_registers(kernel: low.LoweredKernel, scratch: Mapping[str, ScratchArray]) -> int:
    """Returns the words that a work-item holds in registers at once: values, and what of private arrays lies there."""
    values = words_at_once(kernel)
    if all(each.space != "private" for each in kernel.objects):
        return values
    origins = Origins(kernel.body)
    tables = _tables(kernel, origins, _stepped_in_open_loops(kernel, origins))
    held = [
        max(size - scratch[name].bytes, 0) if name in scratch else size for name, size in _held(kernel, tables).items()
    ]
    return values + sum(-(-size // WORD_BYTES) for size in held)


def _held(kernel: low.LoweredKernel, tables: Container[str | None]) -> dict[str, int]:
    """Returns the bytes of private arrays that a compiler has a place for: of a table of known numbers none, as these
    stand in instructions where loops are written out, and of vectors those of the components that are read."""
    private = {each.name: each.type for each in kernel.objects if each.space == "private"}
    components = _components_read(kernel)
    found: dict[str, int] = {}
    for name, type_ in private.items():
        element = type_
        while isinstance(element, Array):
            element = element.element
        size = type_.size
        if isinstance(element, Vector) and name in components:
            size = size // element.width * len(components[name])
        is_written_out = name in tables and size <= WORD_BYTES * REGISTERS
        found[name] = 0 if is_written_out else size
    return found


def _components_read(kernel: low.LoweredKernel) -> dict[str, frozenset[int]]:
    """Returns the components that are read of private arrays of vectors, of those that nothing reads as a whole."""
    of_registers = components_read(kernel.body)
    loaded: Counter[str | None] = Counter()
    picked: Counter[str | None] = Counter()
    found: dict[str | None, frozenset[int]] = {}
    for statement in walks.simple_statements(kernel.body):
        own = [each.access for each in walks.accesses_of(statement) if each.access.direction != "store"]
        loaded.update(each.variable for each in own if each.space == "private")
        for variable, components in _picked(statement, of_registers):
            picked[variable] += 1
            found[variable] = found.get(variable, frozenset()).union(components)
    if loaded[None]:
        return {}
    return {name: parts for name, parts in found.items() if name is not None and picked[name] == loaded[name]}


def _picked(
    statement: low.Simple, of_registers: Mapping[low.Register, frozenset[int]]
) -> Iterator[tuple[str | None, Collection[int]]]:
    """Yields the loads from private arrays of which a statement uses components only, or puts them into a register of
    which others do: the variable, and which."""
    match statement:
        case low.Assign(register=register, value=low.Load() as load, components=None) if register in of_registers:
            if load.access.space == "private":
                yield load.access.variable, of_registers[register]
    for expression in walks.expressions_of(statement):
        for each in walks.walk(expression):
            match each:
                case low.Pick(vector=low.Load() as load) if load.access.space == "private":
                    yield load.access.variable, each.components


def _is_known(
    value: low.Expression | low.Register,
    origins: Origins,
    unknown: Collection[low.Register],
    tables: Container[str | None] = (),
) -> bool:
    """Returns whether a compiler that has unrolled loops knows a value."""
    return not any(_decides_late(each, unknown, tables) for each in origins.behind([value]))


def _decides_late(origin: Origin, unknown: Collection[low.Register], tables: Container[str | None]) -> bool:
    match origin:
        case low.Load():
            return origin.access.variable not in tables
        case low.WorkItem() | low.Call() | low.ImageSize() | low.Atomic() | low.Collective():
            return True
        case low.Read():
            return origin.register.parameter is not None or origin.register in unknown
    return False


def _tables(kernel: low.LoweredKernel, origins: Origins, unknown: Collection[low.Register]) -> set[str | None]:
    """Returns the private arrays that hold nothing but known numbers, and the tables in constant memory."""
    found: set[str | None] = {each.name for each in kernel.objects if each.space in ("private", "constant")}
    for statement in walks.simple_statements(kernel.body):
        match statement:
            case low.Store() if _is_known(statement.value, origins, unknown):
                pass
            case low.Store() | low.Atomic() if statement.access.variable is None:
                return set()
            case low.Store() | low.Atomic():
                found.discard(statement.access.variable)
    return found


def _stepped_in_open_loops(kernel: low.LoweredKernel, origins: Origins) -> set[low.Register]:
    """Returns the registers that go on from iteration to iteration of loops that are not unrolled."""
    found: set[low.Register] = set()
    for loop in walks.statements(kernel.body):
        if isinstance(loop, low.Loop) and (loop.unroll == 1 or not _is_known(loop.condition, origins, ())):
            found |= {
                register
                for register, statements in setting((loop,)).items()
                if all(register in set(walks.registers_read(each)) for each in statements)
            }
    return found
