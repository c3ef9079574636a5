"""Random kernels whose loops, branches and indices are affine in work-items, counters and sizes, as OpenCL C text."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

_T = TypeVar("_T")

LENGTH = 4096
"""Elements of each array; indices are in there at sizes up to 9 and with up to 32 work-items along an axis."""
MIDDLE = 2048
DEPTH, LOOPS = 2, 2
"""The most loops around each other, and in a kernel: with more, isl is busy for minutes with some of them."""

TOGETHER = (
    "barrier(CLK_LOCAL_MEM_FENCE);",
    "barrier(CLK_LOCAL_MEM_FENCE);",
    "x += work_group_scan_inclusive_add(x);",
    "x = sub_group_shuffle_xor(x, 1) * 2.0f;",
    "sub_group_barrier(CLK_LOCAL_MEM_FENCE);",
    "{ event_t e = async_work_group_copy(s, a + MIDDLE, 8, 0); wait_group_events(1, &e); }",
)
"""Work-items of a group do these together."""

HELPERS = """\
__constant int steps[4] = {1, 0, -1, 2};
int moved(int at, int by) { if (by > 2) return at + by; return at - by; }
float taken(__global const float *a, int at, int n) {
    float x = 0;
    for (int t = 0; t < n; t++) x += a[at + t];
    return x;
}
void put(__global float *o, int at, float value) { if (at < 2050) return; o[at] = value; }
"""


class Chooser(Protocol):
    """A source of choices: a random number generator, or hypothesis, which can make them smaller."""

    def one_of(self, options: Sequence[_T]) -> _T: ...

    def number(self, low: int, high: int) -> int: ...


class RandomChooser:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def one_of(self, options: Sequence[_T]) -> _T:
        return self.rng.choice(options)

    def number(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)


@dataclass(frozen=True)
class RandomKernel:
    source: str
    global_size: tuple[int | str, ...]
    local_size: tuple[int, ...]

    def shape(self, n: int) -> tuple[int, ...]:
        """Returns the global size at a size `n`."""
        axes = zip(self.global_size, self.local_size, strict=True)
        return tuple(size if isinstance(size, int) else (n + 1) * items for size, items in axes)


@dataclass(frozen=True)
class _Scope:
    """Holds what can be used at a point of the kernel.

    Attributes:
        names: of whole numbers; `positive` are those that are never negative, `uniform` the same in all work-items.
        is_uniform: whether all work-items of a group get here together.
        loop: whether `continue` and `break` can be used.
    """

    names: tuple[str, ...]
    positive: tuple[str, ...]
    uniform: tuple[str, ...]
    depth: int = 0
    is_uniform: bool = True
    loop: bool = False

    def restricted(self) -> _Scope:
        """Returns the scope with only what is the same in all work-items."""
        return replace(self, names=self.uniform, positive=tuple(n for n in self.positive if n in self.uniform))


@dataclass
class _Writer:
    choose: Chooser
    lines: list[str] = field(default_factory=list)
    variables: int = 0
    loops: int = 0

    def line(self, scope: _Scope, text: str) -> None:
        self.lines.append("    " * (scope.depth + 1) + text)

    def fresh(self) -> str:
        self.variables += 1
        return f"v{self.variables}"

    # --- expressions

    def term(self, scope: _Scope) -> str:
        form = self.choose.number(0, 7)
        name = self.choose.one_of(scope.names)
        if form <= 3:
            return name
        if form <= 5:
            return f"{self.choose.number(-2, 3)} * {name}"
        divisor = self.choose.number(2, 4)
        positive = self.choose.one_of(scope.positive)
        return f"{positive} {'/' if form == 6 else '%'} {divisor}"

    def affine(self, scope: _Scope) -> str:
        terms = [self.term(scope) for _ in range(self.choose.number(1, 2))]
        return " + ".join([*terms, str(self.choose.number(-3, 4))])

    def index(self, scope: _Scope) -> str:
        # Without quotients, as unions of what accesses with different ones touch keep isl busy for half a minute.
        names = [self.choose.one_of(scope.names) for _ in range(self.choose.number(1, 2))]
        terms = [f"{self.choose.one_of(('', '', '2 * ', '-'))}{name}" for name in names]
        text = " + ".join([*terms, str(MIDDLE + self.choose.number(-3, 4))])
        return f"moved({text}, {self.choose.one_of(scope.names)})" if self.choose.number(0, 5) == 0 else text

    def condition(self, scope: _Scope) -> str:
        match self.choose.number(0, 9):
            case 0:
                return (
                    f"{self.choose.one_of(scope.positive)} % {self.choose.number(2, 3)} == {self.choose.number(0, 1)}"
                )
            case 1:
                return f"{self.comparison(scope)} && {self.comparison(scope)}"
            case 2:
                return f"{self.comparison(scope)} || {self.comparison(scope)}"
            case 3:
                return f"!({self.comparison(scope)})"
            case 4:
                return f"q {self.choose.one_of(('<', '>='))} 0.5f || {self.comparison(scope)}"
        return self.comparison(scope)

    def comparison(self, scope: _Scope) -> str:
        match self.choose.number(0, 7):
            case 0:  # what is below zero is out of the range
                return f"(uint)({self.affine(scope)}) < (uint){self.choose.one_of(scope.positive)}"
            case 1:
                return f"{self.affine(scope)} > steps[{self.choose.one_of(scope.positive)} % 4]"
        sign = self.choose.one_of(("<", "<=", ">", ">=", "==", "!="))
        return f"{self.affine(scope)} {sign} {self.choose.one_of((*scope.names, '2'))}"

    # --- statements

    def statements(self, scope: _Scope) -> None:
        for _ in range(self.choose.number(1, 2 if scope.depth else 3)):
            self.statement(scope)

    def statement(self, scope: _Scope) -> None:
        match self.choose.number(0, 12 if scope.depth < DEPTH else 5):
            case 0:
                self.line(scope, f"x += a[{self.index(scope)}];")
            case 1:
                self.line(scope, f"o[{self.index(scope)}] = x * 2.0f + {self.choose.number(1, 3)}.5f;")
            case 2:
                self.line(scope, f"s[{self.index(scope)}] -= x / 3.0f;")
            case 3:
                self.line(scope, f"put(o, {self.index(scope)}, x);")
            case 4:
                self.line(
                    scope, f"x += taken(a, {self.affine(scope)} + {MIDDLE}, {self.choose.one_of(('n', '2', 'm'))});"
                )
            case 5:
                if scope.is_uniform:
                    self.line(scope, self.choose.one_of(TOGETHER))
                elif self.choose.number(0, 3) == 0:
                    self.line(scope, "x += sub_group_non_uniform_reduce_add(x);")
                elif scope.loop:
                    self.line(scope, f"if ({self.condition(scope)}) {self.choose.one_of(('continue', 'break'))};")
                else:
                    self.line(scope, f"k += {self.choose.one_of(scope.names)};")
                    self.line(scope, "o[MIDDLE] = k;")
            case 6 | 7:
                self.branch(scope)
            case 8:
                self.flag(scope)
            case _:
                if self.loops < LOOPS:
                    self.loop(scope)
                else:
                    self.branch(scope)

    def branch(self, scope: _Scope) -> None:
        uniform = scope.is_uniform and self.choose.number(0, 1) == 0
        inner = replace(scope, depth=scope.depth + 1, is_uniform=uniform)
        self.line(scope, f"if ({self.condition(scope.restricted() if uniform else scope)}) {{")
        self.statements(inner)
        if self.choose.number(0, 2) == 0:
            self.line(scope, "} else {")
            self.statements(inner)
        self.line(scope, "}")

    def flag(self, scope: _Scope) -> None:
        """Writes a short loop that leaves a flag, and halves a number beside its counter."""
        v, flag, half = self.fresh(), self.fresh(), self.fresh()
        self.line(scope, f"int {flag} = 0, {half} = {self.choose.one_of(('16', *scope.positive))};")
        self.line(scope, f"for (int {v} = 0; {v} < 3; ++{v}, {half} /= 2)")
        self.line(scope, f"    if ({self.affine(scope)} == {self.choose.one_of((v, half))}) {flag} = 1;")
        self.line(scope, f"if ({flag}) x *= 3.0f;")

    def loop(self, scope: _Scope) -> None:
        self.loops += 1
        uniform = scope.is_uniform and self.choose.number(0, 1) == 0
        names = scope.restricted() if uniform else scope
        v = self.fresh()
        low = self.choose.one_of(("0", "1", self.choose.one_of(names.positive)))
        high = self.choose.one_of((*names.positive, self.affine(names), "4"))
        step = self.choose.number(1, 3)
        leaves = not uniform and self.choose.number(0, 1) == 0
        match self.choose.number(0, 7):
            case 0 | 1 | 2:
                sign = self.choose.one_of(("<", "<="))
                self.line(scope, f"for (int {v} = {low}; {v} {sign} {high}; {v} += {step}) {{")
                end = "}"
            case 3:
                self.line(scope, f"for (int {v} = {high}; {v} >= {low}; {v} -= {step}) {{")
                end = "}"
            case 4:
                self.line(scope, f"for (int {v} = 0; {v} != {self.choose.one_of(names.positive)}; ++{v}) {{")
                end = "}"
            case 5:
                self.line(scope, f"int {v} = {low};")
                self.line(scope, f"while ({v} < {high}) {{")
                end, leaves = f"    {v} = {v} + {step}; }}", False
            case 6:
                self.line(scope, f"int {v} = {low};")
                self.line(scope, "do {")
                end, leaves = f"    {v} += {step}; }} while ({v} <= {high});", False
            case _:
                self.line(scope, f"__global const float *p{v} = a + {self.index(names)};")
                self.line(scope, f"for (int {v} = {high}; {v} > {low}; --{v}, p{v} += {step}) {{")
                self.line(scope, f"    x += *p{v};")
                end = "}"
        inner = _Scope(
            names=(*scope.names, v),
            positive=(*scope.positive, v),
            uniform=(*scope.uniform, v) if uniform else scope.uniform,
            depth=scope.depth + 1,
            is_uniform=uniform,
            loop=leaves,
        )
        self.statements(inner)
        self.line(scope, end)


def random_kernel(choose: Chooser) -> RandomKernel:
    """Returns a kernel ``k(a, o, n, m, q)`` of one or two axes; conditions compare the float ``q`` with a half."""
    rank = choose.number(1, 2)
    local = tuple(choose.one_of((1, 3, 4, 8) if axis == 0 else (1, 2, 3)) for axis in range(rank))
    shape: list[int | str] = []
    for axis, items in enumerate(local):
        groups = choose.number(0, 3)
        shape.append(f"(n + 1) * {items}" if groups == 0 and axis == 0 else max(groups, 1) * items)
    ids = [("i", "get_global_id(0)"), ("l", "get_local_id(0)"), ("g", "get_group_id(0)")]
    if rank == 2:
        ids += [("j", "get_group_id(1) * get_local_size(1) + get_local_id(1)"), ("h", "get_group_id(1)")]
    names = tuple(name for name, _ in ids)
    writer = _Writer(choose)
    uniform = tuple(name for name in (*names, "n", "m") if name in ("g", "h", "n", "m"))
    scope = _Scope((*names, "n", "m"), (*names, "n", "m"), uniform)
    writer.statements(scope)
    if choose.number(0, 2) == 0:
        leave = choose.one_of(("return", "goto end"))
        writer.line(scope, f"if ({writer.condition(scope)}) {leave};")
        # Barriers after that would not be met by all.
        writer.statements(replace(scope, is_uniform=False))
    declared = ", ".join(f"{name} = {text}" for name, text in ids)
    source = (
        f"{HELPERS}"
        f"#define MIDDLE {MIDDLE}\n"
        "__kernel void k(__global const float *a, __global float *o, int n, int m, float q) {\n"
        f"    int {declared}, k = 0;\n"
        f"    __local float s[{LENGTH}];\n"
        "    float x = 1.0f;\n" + "\n".join(writer.lines) + "\nend:\n    o[0] = x;\n}\n"
    )
    return RandomKernel(source, tuple(shape), local)
