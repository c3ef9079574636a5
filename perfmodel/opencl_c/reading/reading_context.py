"""The readers of expressions, initializers and statements share this: the source, its names, and how deep they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c import syntax as sx
from perfmodel.opencl_c import types as ts
from perfmodel.opencl_c.reading import clang_tree as ct
from perfmodel.opencl_c.reading.clang_tree import Item, RawCursor, Tree
from perfmodel.opencl_c.reading.preprocessing import Expanded
from perfmodel.opencl_c.reading.types import Types

DEPTH = 150
"""Trees are walked by recursion, here and by those who execute or count them; hand-written kernels reach 20."""

STATEMENTS = 10_000
"""No whole source may have more, each variable counted as another; hand-written kernels reach some hundreds."""


@dataclass
class ReadingContext:
    """Holds a source that is being read.

    Attributes:
        refused: why functions are that use what is not supported, by their names.
        variables, functions: by clang's declaration.
        declared: reads what a key declares for the whole program, when somebody first names it.
        calls: which of the program's functions every function calls, with the place of the first call.
    """

    tree: Tree
    text: Expanded
    types: Types
    refused: Mapping[str, SourceError] = field(default_factory=dict)
    variables: dict[int, sx.Variable] = field(default_factory=dict)
    functions: dict[int, sx.Function] = field(default_factory=dict)
    tables: list[sx.Variable] = field(default_factory=list)
    calls: dict[str, dict[str, int]] = field(default_factory=dict)
    function: str = ""
    depth: int = 0
    started: list[sx.Variable] = field(default_factory=list)
    counted: int = 0
    declared: Callable[[int], None] = field(default=lambda _: None)

    def set_depth(self, depth: int, offset: int) -> None:
        self.depth = depth - 1
        self.enter(offset)

    @contextmanager
    def deeper(self, offset: int) -> Iterator[None]:
        self.enter(offset)
        yield
        self.depth -= 1

    def enter(self, offset: int) -> None:
        self.depth += 1
        if self.depth > DEPTH:
            reason = f"statements and expressions are nested more than {DEPTH} deep: use variables for their parts"
            raise self.fault(reason, offset)

    def count(self, offset: int) -> None:
        """Counts one more statement or variable."""
        self.counted += 1
        if self.counted > STATEMENTS:
            raise self.fault(f"the source has more than {STATEMENTS} statements and variables: use loops", offset)

    def type(self, item: Item) -> ts.Type:
        return self.types.of_cursor(item.cursor, item.start)

    def place(self, item: Item) -> sx.Place:
        return self.text.place(item.start)

    def slice(self, item: Item) -> str:
        return self.text.text[item.start : item.end] if item.start >= 0 else ""

    def fault(self, reason: str, where: Item | int) -> SourceError:
        return self.text.fault(reason, where if isinstance(where, int) else where.start)

    def unreadable(self, item: Item) -> SourceError:
        """Returns the refusal of an expression that perfmodel does not support."""
        text = self.slice(item)
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        reason = f"perfmodel cannot read the expression {shown!r}; write it with plain operators"
        if item.kind == ct.KIND.BLOCK_EXPR:
            reason = "the kernel uses a block (^), which perfmodel does not support; use a function"
        return self.fault(reason, item)

    def variable(self, cursor: RawCursor, offset: int) -> sx.Variable:
        key = ct.key_of(cursor)
        if key not in self.variables:
            self.declared(key)
        found = self.variables.get(key)
        if found is None:
            raise self.fault(f"{self.tree.spelling(cursor)!r} is used, but nothing gives it a value", offset)
        if found in self.started:
            raise self.fault(f"{found.name!r} is used in its own initial value, where it has none yet", offset)
        return found

    @contextmanager
    def starting(self, variable: sx.Variable) -> Iterator[None]:
        """Marks a variable as being initialized, in a ``with`` block."""
        self.started.append(variable)
        yield
        self.started.pop()
