"""Compiled evaluation: a flat list of numpy operations on blocks of elements that stay in the cache.

Equal sub-expressions get one slot. What depends on no array is computed once a call, the rest block by block into a few
reused buffers, so that no temporary of full length is ever made.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfmodel.basics.errors import FeatureError, FitError, PerfmodelError, nearest
from perfmodel.expression.derivative import lowered
from perfmodel.expression.functions import FUNCTIONS
from perfmodel.expression.tree import Binary, Call, FeatureName, Node, Number, Parameter, walk

BLOCK = 16_384
BUFFER_ELEMENTS = 2**20  # of all buffers together; very large expressions get shorter blocks
_OPERATORS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "**": np.power}

Floats = NDArray[np.float64]
Values = Mapping[str, ArrayLike]


@dataclass(frozen=True, slots=True)
class Instruction:
    """``cells[target] = apply(*cells[sources])``."""

    apply: Callable[..., Any]
    sources: tuple[int, ...]
    target: int


@dataclass(frozen=True)
class Plan:
    """The instructions of one tape for one choice of which inputs are arrays.

    Attributes:
        once: instructions on scalars.
        blockwise: instructions on arrays; targets are the cells of buffers or of results.
        results: rows of the result, by the cell that is computed straight into them.
        buffers: how many buffers there are; they are the cells after the tape's slots.
    """

    once: list[Instruction]
    blockwise: list[Instruction]
    results: dict[int, int]
    buffers: int


class Tape:
    """Expressions compiled for evaluation with any parameters and features.

    Names in `inputs` have to be given, and take part in broadcasting, whether or not an expression contains them.
    """

    def __init__(self, nodes: Sequence[Node], inputs: Sequence[Parameter | FeatureName] = ()) -> None:
        self.constants: dict[int, float] = {}
        self.parameters: dict[str, int] = {}
        self.features: dict[str, int] = {}
        self.instructions: list[Instruction] = []
        roots = lowered(nodes)
        slots = self._record([*roots, *inputs])
        self.outputs = [slots[root] for root in roots]
        self.slots = len(set(slots.values()))
        self._plan = functools.lru_cache(maxsize=16)(self._make_plan)

    def __call__(self, parameters: Values, features: Values) -> tuple[Floats, ...]:
        return tuple(self.evaluate(parameters, features))

    def evaluate(self, parameters: Values, features: Values) -> Floats:
        """Evaluates every expression; inputs broadcast against each other.

        Returns:
            An array of shape (number of expressions, *broadcast shape of the inputs).

        Raises:
            FitError: a parameter has no value, or one that is not a number.
            FeatureError: a feature has no values, or such as are not numbers or do not broadcast.
        """
        inputs = _load(self.parameters, parameters, "parameter", FitError)
        inputs |= _load(self.features, features, "feature", FeatureError)
        try:
            shape = np.broadcast_shapes(*(array.shape for array in inputs.values()))
        except ValueError as error:
            named = (self.parameters | self.features).items()
            shapes = [f"{name} {inputs[slot].shape}" for name, slot in named if inputs[slot].size != 1]
            message = f"arrays do not broadcast: give {', '.join(shapes[:8])} one shape"
            raise FeatureError(message) from error
        with np.errstate(all="ignore"):
            rows = self._evaluate_flat(inputs, shape)
        return rows.reshape(len(self.outputs), *shape)

    def applied(
        self, parameters: Mapping[str, Any], features: Mapping[str, Any], call: Callable[..., Any]
    ) -> list[Any]:
        """Returns every expression of values of any kind, each operation by ``call(function, *operands)``."""
        cells: list[Any] = [None] * self.slots
        for slots, values in ((self.parameters, parameters), (self.features, features)):
            for name, slot in slots.items():
                cells[slot] = values[name]
        for slot, value in self.constants.items():
            cells[slot] = np.float64(value)
        with np.errstate(all="ignore"):
            for step in self.instructions:
                cells[step.target] = call(step.apply, *[cells[source] for source in step.sources])
        return [cells[slot] for slot in self.outputs]

    def _evaluate_flat(self, inputs: dict[int, Floats], shape: tuple[int, ...]) -> Floats:
        size = math.prod(shape)
        varying = {slot: a for slot, a in inputs.items() if a.size != 1 and (any(a.strides) or not a.size)}
        # Most have the whole shape, and broadcasting to it takes as long as several operations on a few measurements.
        arrays = {
            slot: (a if a.shape == shape else np.broadcast_to(a, shape)).reshape(-1) for slot, a in varying.items()
        }
        plan = self._plan(frozenset(arrays))
        cells: list[Any] = [None] * self.slots
        for slot, value in self.constants.items():
            cells[slot] = np.float64(value)
        for slot, array in inputs.items():
            if slot not in arrays:
                cells[slot] = array[(0,) * array.ndim]
        for step in plan.once:
            cells[step.target] = step.apply(*[cells[source] for source in step.sources])
        rows = np.empty((len(self.outputs), size))
        _run_blocks(plan, cells, arrays, rows)
        for row, slot in enumerate(self.outputs):
            if slot not in plan.results:
                rows[row] = arrays[slot] if slot in arrays else cells[slot]
            elif plan.results[slot] != row:
                rows[row] = rows[plan.results[slot]]
        return rows

    def _record(self, roots: Sequence[Node]) -> dict[Node, int]:
        """Gives each distinct computation a slot; children come first."""
        numbers: dict[tuple[object, ...], int] = {}
        slots: dict[Node, int] = {}
        for node in walk(*roots):
            sources = tuple(slots[child] for child in node.children)
            key = (type(node), _detail(node), *sources)
            if key not in numbers:
                numbers[key] = len(numbers)
                self._emit(node, sources, numbers[key])
            slots[node] = numbers[key]
        return slots

    def _emit(self, node: Node, sources: tuple[int, ...], slot: int) -> None:
        if isinstance(node, Number):
            self.constants[slot] = node.value
        elif isinstance(node, Parameter):
            self.parameters[node.name] = slot
        elif isinstance(node, FeatureName):
            self.features[node.name] = slot
        elif isinstance(node, Binary) and node.operator == "**" and getattr(node.right, "value", None) == 2:
            self.instructions.append(Instruction(np.square, sources[:1], slot))
        else:
            self.instructions.append(Instruction(_ufunc(node), sources, slot))

    def _make_plan(self, arrays: frozenset[int]) -> Plan:
        varying = set(arrays)
        once, blockwise = [], []
        for step in self.instructions:
            if varying.isdisjoint(step.sources):
                once.append(step)
            else:
                varying.add(step.target)
                blockwise.append(step)
        results: dict[int, int] = {}
        for row, slot in enumerate(self.outputs):
            if slot in varying and slot not in arrays:
                results.setdefault(slot, row)
        allocated, buffers = _allocate(blockwise, results, self.slots)
        return Plan(once, allocated, results, buffers)


def compile_nodes(nodes: Sequence[Node]) -> Callable[[Values, Values], tuple[Floats, ...]]:
    """Returns a function of parameters and features that gives the values of all the nodes, as `Tape.evaluate` does."""
    return Tape(nodes)


def _allocate(steps: list[Instruction], results: Mapping[int, int], slots: int) -> tuple[list[Instruction], int]:
    """Replaces the slots of intermediate arrays by buffers, each of which is free again after its last use."""
    last_use = {source: index for index, step in enumerate(steps) for source in step.sources}
    buffer_of: dict[int, int] = {}
    free: list[int] = []
    buffers = 0
    allocated = []
    for index, step in enumerate(steps):
        sources = tuple(buffer_of.get(source, source) for source in step.sources)
        for source in set(step.sources):
            if source in buffer_of and last_use[source] == index:
                free.append(buffer_of.pop(source))
        if step.target not in results:
            if not free:
                free.append(slots + buffers)
                buffers += 1
            buffer_of[step.target] = free.pop()
        allocated.append(Instruction(step.apply, sources, buffer_of.get(step.target, step.target)))
    return allocated, buffers


def _run_blocks(plan: Plan, cells: list[Any], arrays: Mapping[int, Floats], rows: Floats) -> None:
    size = rows.shape[1]
    block = min(BLOCK, max(BUFFER_ELEMENTS // (plan.buffers + 1), 64), max(size, 1))
    buffers = np.empty((plan.buffers, block))
    first_buffer = len(cells)
    for start in range(0, size if plan.blockwise else 0, block):
        stop = min(start + block, size)
        for slot, array in arrays.items():
            cells[slot] = array[start:stop]
        for slot, row in plan.results.items():
            cells[slot] = rows[row, start:stop]
        cells[first_buffer:] = buffers[:, : stop - start]
        for step in plan.blockwise:
            step.apply(*[cells[source] for source in step.sources], out=cells[step.target])


def _load(slots: Mapping[str, int], values: Values, kind: str, error: type[PerfmodelError]) -> dict[int, Floats]:
    loaded = {}
    for name, slot in slots.items():
        if name not in values:
            raise error(f"{kind} '{name}' has no value: give one{nearest(name, values)}")
        try:
            loaded[slot] = np.asarray(values[name], dtype=np.float64)
        except (TypeError, ValueError) as problem:
            raise error(f"{kind} '{name}' is not a number or an array of numbers: {problem}") from problem
    return loaded


def _detail(node: Node) -> str:
    """Returns what tells a node from others of its type with the same children."""
    match node:
        case Number(value):
            return repr(value)  # unlike ==, it tells 0.0 from -0.0
        case Parameter(name) | FeatureName(name):
            return name
        case Binary(operator):
            return operator
        case Call(function):
            return function
    return ""


def _ufunc(node: Node) -> Callable[..., Any]:
    if isinstance(node, Binary):
        return _OPERATORS[node.operator]
    if isinstance(node, Call):
        evaluate = FUNCTIONS[node.function].evaluate
        assert evaluate is not None, f"{node.function} is lowered before"
        return evaluate
    return np.negative
