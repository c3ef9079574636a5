"""A brute-force oracle for counts: the generated OpenCL C is executed, work-item by work-item, and its work is tallied.

Nothing of perfmodel's counting is used, nor any integer-set library. The C that Loopy writes is translated to Python
line by line; array elements are `Value` objects that know only their type and tally the arithmetic done with them, and
loop variables and sizes are plain integers, whose arithmetic is index arithmetic and not counted.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

TYPES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
}
Index = tuple[int, ...]


@dataclass
class Site:
    """One access in the program's text, and the flat address it had at each (group, item, loop variables)."""

    variable: str
    direction: str
    space: str
    dtype: str
    addresses: dict[tuple[Index, Index, Index], int] = field(default_factory=dict)

    @property
    def executions(self) -> int:
        return len(self.addresses)

    def subgroups(self, local_size: Index, width: int) -> int:
        """Returns executions by sub-groups of `width` work-items, one with any active work-item counted once."""
        return len({(g, _linear(i, local_size) // width, loops) for g, i, loops in self.addresses})

    @property
    def groups(self) -> int:
        return len({(group, loops) for group, _, loops in self.addresses})

    @property
    def footprint(self) -> int:
        """Returns the number of distinct elements; local memory is another one in each group."""
        if self.space == "global":
            return len(set(self.addresses.values()))
        return len({(group, address) for (group, _, _), address in self.addresses.items()})

    def strides(self, kind: str, rank: int) -> tuple[int | None, ...]:
        """Returns address steps between neighbours along each local or group axis; None where no neighbours were
        seen."""
        return tuple(self._stride(kind, axis) for axis in range(rank))

    def _stride(self, kind: str, axis: int) -> int | None:
        steps = set()
        for (group, item, loops), address in self.addresses.items():
            place = item if kind == "local" else group
            following = (*place[:axis], place[axis] + 1, *place[axis + 1 :])
            key = (group, following, loops) if kind == "local" else (following, item, loops)
            if key in self.addresses:
                steps.add(self.addresses[key] - address)
        assert len(steps) <= 1, f"{self.variable} has steps {steps} along {kind} axis {axis}"
        return steps.pop() if steps else None


def _linear(item: Index, local_size: Index) -> int:
    linear, step = 0, 1
    for position, size in zip(item, local_size, strict=False):
        linear += position * step
        step *= size
    return linear


@dataclass
class Tally:
    """Holds what a run did."""

    operations: Counter[tuple[str, str]]
    sites: list[Site]
    barriers: int
    work_groups: int
    work_items: int

    def accesses(self, **wanted: str) -> int:
        chosen = [s for s in self.sites if all(getattr(s, key) == value for key, value in wanted.items())]
        return sum(site.executions for site in chosen)


class Value:
    """A number in flight: its type, and how many multiplications in it still wait for an addition to fuse with.

    A factor of minus one is free.
    """

    def __init__(self, tally: Tally, dtype: str, products: int = 0) -> None:
        self.tally, self.dtype, self.products = tally, dtype, products

    def common(self, *others: Any) -> str:
        """Returns C's type of an operation; loop variables and int literals take any type."""
        types = {self.dtype, *(other.dtype for other in others if isinstance(other, Value))}
        return "float32" if types == {"int32", "float32"} else str(np.result_type(*types))

    def count(self, kind: str, dtype: str, times: int = 1) -> None:
        self.tally.operations[kind, dtype] += times

    def __mul__(self, other: Any) -> Value:
        for one, value in ((self, other), (other, self)):
            if isinstance(one, Literal) and one.number in (1, -1):
                return value
        dtype = self.common(other)
        self.count("mul", dtype)
        return Value(self.tally, dtype, 1)

    def __add__(self, other: Any) -> Value:
        dtype = self.common(other)
        operands = [v for v in (self, other) if isinstance(v, Value) and v.dtype == dtype]
        waiting = sum(v.products for v in operands)
        if waiting:
            self.count("mul", dtype, -1)
        self.count("madd" if waiting else "add", dtype)
        return Value(self.tally, dtype, max(0, waiting - 1))

    def __truediv__(self, other: Any) -> Value:
        return self.call("div", other)

    def __rtruediv__(self, other: Any) -> Value:
        return self.call("div", other)

    def compare(self, other: Any) -> Value:
        self.count("compare", self.common(other))
        return Value(self.tally, "int32")

    def call(self, kind: str, *others: Any) -> Value:
        dtype = self.common(*others)
        self.count(kind, dtype)
        return Value(self.tally, dtype)

    def __neg__(self) -> Value:
        return self

    def __index__(self) -> int:
        return 0

    def cast(self, dtype: str) -> Value:
        return Value(self.tally, dtype)

    __radd__, __rmul__ = __add__, __mul__
    __lt__ = __le__ = __gt__ = __ge__ = compare


class Literal(Value):
    """A floating-point literal, which has C's type."""

    def __init__(self, tally: Tally, text: str) -> None:
        super().__init__(tally, "float32" if text.endswith("f") else "float64")
        self.number = float(text.rstrip("f"))

    def __neg__(self) -> Value:
        return Literal(self.tally, f"{-self.number}{'f' if self.dtype == 'float32' else ''}")


class Translator:
    """Recursive descent over C's expressions, writing Python; each array access becomes a numbered site."""

    TOKEN = re.compile(
        r"\s*(?:(?P<number>(?:\d+\.\d*(?:[eE][+-]?\d+)?|\d+)[fulUL]*)|(?P<name>\w+)"
        r"|(?P<symbol><=|>=|==|!=|&&|\|\||[-+*/%<>!?:(),\[\]]))"
    )
    LEVELS = (("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))

    def __init__(self, arrays: Mapping[str, tuple[str, str]], sites: list[Site]) -> None:
        self.arrays, self.sites = arrays, sites
        self.tokens: list[str] = []

    def expression(self, text: str) -> str:
        self.tokens = [m[m.lastgroup or 0] for m in self.TOKEN.finditer(text)]
        result = self.ternary()
        assert not self.tokens, f"left over in {text!r}: {self.tokens}"
        return result

    def take(self, *symbols: str) -> str | None:
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in symbols else None

    def ternary(self) -> str:
        condition = self.binary(0)
        if not self.take("?"):
            return condition
        first = self.ternary()
        self.take(":")
        return f"select({condition}, {first}, {self.ternary()})"

    def binary(self, level: int) -> str:
        if level == len(self.LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while symbol := self.take(*self.LEVELS[level]):
            right = self.binary(level + 1)
            if symbol in ("/", "%"):
                left = f"{'divide' if symbol == '/' else 'remainder'}({left}, {right})"
            else:
                left = f"({left} {({'&&': 'and', '||': 'or'}).get(symbol, symbol)} {right})"
        return left

    def unary(self) -> str:
        if self.take("-"):
            return f"(-{self.unary()})"
        if self.take("!"):
            return f"(not {self.unary()})"
        if self.take("("):
            if self.tokens[0] in TYPES and self.tokens[1] == ")":
                dtype = TYPES[self.tokens.pop(0)]
                self.take(")")
                return f"cast({self.unary()}, {dtype!r})"
            inner = self.ternary()
            self.take(")")
            return f"({inner})"
        return self.atom(self.tokens.pop(0))

    def atom(self, token: str) -> str:
        if token[0].isdigit():
            return f"Literal(tally, {token!r})" if "." in token else token
        if self.take("("):
            arguments = []
            while not self.take(")"):
                arguments.append(self.ternary())
                self.take(",")
            if token in ("gid", "lid"):
                return f"{token}[{arguments[0]}]"
            return f"call({re.sub('f(32|64)$', '', token)!r}, {', '.join(arguments)})"
        if token in self.arrays:
            index = "0"
            if self.take("["):
                index = self.ternary()
                self.take("]")
            return self.access(token, "load", index)
        if self.take("["):  # of a private array
            self.ternary()
            self.take("]")
        return token

    def access(self, name: str, direction: str, index: str) -> str:
        space, dtype = self.arrays[name]
        self.sites.append(Site(name, direction, space, dtype))
        return f"access({len(self.sites) - 1}, {index}, loops)"


def run(source: str, global_size: Index, local_size: Index, scalars: Mapping[str, int]) -> Tally:
    """Executes a generated kernel for every work-item."""
    tally = Tally(operations=Counter(), sites=[], barriers=0, work_groups=0, work_items=0)
    code, axes = _translate(source, tally.sites), len(global_size)
    groups = tuple(g // s for g, s in zip(global_size, local_size, strict=True))
    namespace: dict[str, Any] = {"tally": tally, **_builtins(tally)}
    exec(code, namespace)
    main: Callable[..., Iterator[None]] = namespace["main"]
    for gid in itertools.product(*map(range, groups)):
        tally.work_groups += 1
        for lid in itertools.product(*map(range, local_size)):
            tally.work_items += 1
            main(gid + (0,) * (3 - axes), lid + (0,) * (3 - axes), **scalars)
    tally.operations = +tally.operations
    return tally


def _builtins(tally: Tally) -> dict[str, Any]:
    def divide(a: Any, b: Any) -> Any:
        whole = isinstance(a, int) and isinstance(b, int)
        return int(a / b) if whole else a / b

    def call(name: str, *arguments: Any) -> Any:
        first = next((a for a in arguments if isinstance(a, Value)), None)
        if first is None:
            return WHOLE_NUMBERS[name.removeprefix("loopy_").split("_int")[0]](*arguments)
        return first.call(name, *arguments)

    return {
        "divide": divide,
        "remainder": lambda a, b: a - b * int(a / b),
        "select": lambda condition, a, b: (a if condition else b) if isinstance(a, int) else a,
        "cast": lambda value, dtype: value.cast(dtype) if isinstance(value, Value) else value,
        "call": call,
        "Value": Value,
        "Literal": Literal,
    }


WHOLE_NUMBERS: dict[str, Callable[..., int]] = {
    "min": min,
    "max": max,
    "floor_div": operator.floordiv,
    "floor_div_pos_b": operator.floordiv,
    "mod": operator.mod,
    "mod_pos_b": operator.mod,
}

PROLOGUE = """
def main(gid, lid, {scalars}):
    def access(site, address, loops):
        tally.sites[site].addresses[gid, lid, loops] = int(address.__index__())
        return Value(tally, tally.sites[site].dtype)
    loops = ()
"""


def _translate(source: str, sites: list[Site]) -> str:
    text = source[source.index("__kernel") :]
    text = re.sub(r"__attribute__ \(\(.*?\)\)\) ", "", text)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    signature, body = text.split("\n{\n", 1)
    arrays: dict[str, tuple[str, str]] = {}
    scalars = []
    for declaration in signature[signature.index("(") + 1 : signature.rindex(")")].split(","):
        words = declaration.replace("*", " ").split()
        if words[0] == "__global":
            arrays[words[-1]] = ("global", TYPES[words[1]])
        else:
            scalars.append(words[-1])
    return PROLOGUE.format(scalars=", ".join(scalars)) + "\n".join(_body(body, arrays, sites)) + "\n"


def _body(body: str, arrays: dict[str, tuple[str, str]], sites: list[Site]) -> Iterator[str]:
    """Yields Python lines; C's indentation is kept, braces are dropped."""
    translator = Translator(arrays, sites)
    registers: set[str] = set()
    loops: list[tuple[int, str]] = []
    lines = iter(body.rstrip().removesuffix("}").split("\n"))
    for line in lines:
        stripped = line.strip()
        if stripped in ("", "{", "}", ";"):
            continue
        pad = len(line) - len(line.lstrip()) + 2
        loops = [(p, name) for p, name in loops if p < pad]
        variables = "".join(f"{name}, " for _, name in loops)
        indent = " " * pad
        if match := re.match(r"(__local )?(\w+) (\w+)(\[.*\])?;$", stripped):
            if match[1]:
                arrays[match[3]] = ("local", TYPES[match[2]])
            else:  # registers never change: a Value has no more than its type
                registers.add(match[3])
                yield f"{indent}{match[3]} = Value(tally, {TYPES[match[2]]!r})"
        elif stripped.startswith("barrier"):
            yield f"{indent}tally.barriers += 1"
        elif match := re.match(r"for \(int (\w+) = (.*); \w+ <= (.*); \+\+\w+\)", stripped):
            low, high = translator.expression(match[2]), translator.expression(match[3])
            yield f"{indent}for {match[1]} in range({low}, {high} + 1):"
            loops.append((pad, match[1]))
        elif match := re.match(r"if \((.*)\)$", stripped):
            yield f"{indent}if {translator.expression(match[1])}:"
        elif match := re.match(r"(\w+)(?:\[(.*)\])? = (.*);$", stripped):
            yield f"{indent}loops = ({variables})"
            store = (
                ""
                if match[1] in registers
                else "; " + translator.access(match[1], "store", translator.expression(match[2] or "0"))
            )
            yield f"{indent}{translator.expression(match[3])}{store}"
        else:
            raise AssertionError(f"the oracle does not read {stripped!r}")


def tally_of(kernel: Any) -> Tally:
    """Tallies what a bound `perfmodel.Kernel` does, by executing what it launches; nothing where the launch is
    empty."""
    launch = launch_of(kernel)
    scalars = {a.name: int(a.value) for a in launch.arguments if hasattr(a, "value")}
    return run(launch.source, launch.global_size, launch.local_size, scalars)


def launch_of(kernel: Any) -> Any:
    """Returns the launch, also an empty one, which no device takes, and which counts hold for all the same."""
    return kernel.program.launch({**dict.fromkeys(kernel.program.arguments, 1), **kernel.bound})


def cycles_of_banks(
    addresses: Sequence[int | None], item: int, banks: int, word: int = 4, *, are_shared: bool = False
) -> int:
    """Returns the cycles that banks take, one word at a time; wide accesses go pass by pass, see
    `perfmodel.counting.banks`."""
    at_once = len(addresses) if item <= word else banks * word // min(item, 16)
    passes = [list(addresses[first : first + at_once]) for first in range(0, len(addresses), at_once)]
    if are_shared and item > word:
        found = []
        for first in range(0, len(passes), 2):
            both = [address for each in passes[first : first + 2] for address in each]
            pairs = {
                away: [(both[lane], both[lane ^ away]) for lane in range(len(both)) if lane ^ away < len(both)]
                for away in (1, 2)
            }
            is_one = any(all(None in pair or pair[0] == pair[1] for pair in each) for each in pairs.values())
            found += [both] if is_one else passes[first : first + 2]
        passes = found
    cycles = 0
    for start in range(0, item, 16):
        for each in passes:
            bytes_ = [a + k for a in each if a is not None for k in range(start, min(item, start + 16))]
            words = {byte // word for byte in bytes_}
            cycles += max(Counter(number % banks for number in words).values(), default=0)
    return cycles
