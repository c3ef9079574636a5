"""A program with sizes and tags bound, ready to be counted and launched."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import CountingError, KernelError, nearest
from perfmodel.basics.notebook import table, titled
from perfmodel.counting.counts import KernelCounts
from perfmodel.kernels.launch import Launch
from perfmodel.kernels.loopy_program import LoopyProgram
from perfmodel.kernels.program import Program
from perfmodel.kernels.struct_pointers import no_arrays
from perfmodel.kernels.struct_values import flattened


class BoundKernel:
    """A bound kernel is a program with sizes and tags, to be counted and launched; `Kernel` adds its other forms.

    Arguments and errors are those of `perfmodel.Kernel`.
    """

    __slots__ = ("_arguments", "program", "tags")

    program: Program
    tags: Mapping[str, str]

    def __init__(
        self,
        program: Any,
        tags: Mapping[str, str] | None = None,
        statistics: Mapping[str, float] | None = None,
        /,
        **arguments: Any,
    ) -> None:
        if isinstance(arguments.get("tags"), Mapping):
            tags = arguments.pop("tags")
        if isinstance(arguments.get("statistics"), Mapping):
            statistics = arguments.pop("statistics")
        if isinstance(arguments.get("name"), str):
            tags = {**(tags or {}), **_named(arguments.pop("name"))}
        for what, given in (("tags", tags), ("statistics", statistics)):
            if not isinstance(given, Mapping | None):
                raise KernelError(f"{what}={given!r:.40} say nothing by name; give them as {what}={{'name': …}}")
        if hasattr(program, "launch"):
            if statistics:
                raise KernelError(f"kernel {program.name!r} is given statistics twice; give them with its program only")
            self.program = program
        else:
            self.program = LoopyProgram(program, statistics)
        self.tags = dict(tags or {})
        numbers = flattened(arguments, self.program.arguments)
        self._arguments = {name: _plain(name, numbers[name]) for name in sorted(numbers)}
        for name in self._arguments:
            if name not in self.program.arguments:
                raise KernelError(
                    f"kernel {self.name!r} has no size or argument {name!r}; it has "
                    f"{', '.join(self.program.arguments) or 'none'}{nearest(name, self.program.arguments)}"
                )
        bound = {n: whole_sizes(self.name, n, self._arguments[n]) for n in self.program.sizes if n in self._arguments}
        self._arguments.update({name: int(value) for name, value in bound.items()})
        if len(bound) == len(self.program.sizes):
            self.program.check(bound)

    @classmethod
    def of(cls, given: Any, /) -> Self:
        """Returns a kernel as it is, and a Loopy program or another `Program` as a kernel of no sizes of its own.

        Raises:
            KernelError: for anything else.
        """
        if isinstance(given, cls):
            return given
        if isinstance(given, list | tuple):
            raise KernelError(
                f"this takes one kernel and not {len(given)}; give one at a time, or compare them by rank"
            )
        if isinstance(given, str | Path):
            raise KernelError(f"{str(given)[:40]!r} is no Kernel; make one of OpenCL C by Kernel.from_opencl(…)")
        return cls(given)

    def as_opencl(self) -> Self:
        """Returns the same kernel as OpenCL C source: of a Loopy program, the code that Loopy generates."""
        program = self.program.as_opencl()
        bound = {name: value for name, value in self._arguments.items() if name in program.arguments}
        return type(self)(program, self.tags, None, **bound)

    @property
    def name(self) -> str:
        return self.tags.get("generator", self.program.name)

    @property
    def is_of_generator(self) -> bool:
        """True if a generator made the kernel: it says what tells its kernels apart, where others have a name alone."""
        return "generator" in self.tags and len(self.tags) > 1

    @property
    def variant(self) -> str:
        """The tags that tell this kernel from its siblings, e.g. ``dtype=float32 prefetch=True``."""
        return " ".join(f"{key}={value}" for key, value in self.tags.items() if key != "generator")

    @property
    def sizes(self) -> dict[str, int]:
        return {name: int(self._arguments[name]) for name in self.program.sizes if name in self._arguments}

    @property
    def bound(self) -> dict[str, float]:
        """The scalar arguments that have a value, sizes and others."""
        return dict(self._arguments)

    def with_name(self, name: str, /) -> Self:
        """Returns the same kernel under this name, which tables, rankings and reports then show.

        Raises:
            KernelError: for what is no name.
        """
        return type(self)(self.program, {**self.tags, **_named(name)}, None, **self._arguments)

    def at(self, /, **arguments: Any) -> Self:
        """Returns the same kernel with these sizes or arguments instead; structs and vectors as for `Kernel`."""
        return type(self)(
            self.program, self.tags, None, **{**self._arguments, **flattened(arguments, self.program.arguments)}
        )

    def bind(self, sizes: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Returns all sizes as arrays that broadcast against each other, the kernel's own where `sizes` has none.

        Raises:
            KernelError: for sizes that are missing, unknown, outside what the kernel assumes, or those of no launch.
        """
        for name in sizes:
            if name not in self.program.sizes:
                raise KernelError(
                    f"kernel {self.name!r} has no size {name!r}; it has "
                    f"{', '.join(self.program.sizes) or 'none'}{nearest(name, self.program.sizes)}"
                )
        merged = {**self.sizes, **sizes}
        missing = [name for name in self.program.sizes if name not in merged]
        if missing:
            if pointers := [name for name in getattr(self.program, "open_pointers", ()) if name in missing]:
                raise KernelError(no_arrays(self.name, pointers))
            given = "them" if len(missing) > 1 else "it"
            words = ", ".join(f"{name}=…" for name in missing)
            raise KernelError(f"kernel {self.name!r} needs a value for {', '.join(missing)}; give {given} as {words}")
        bound = {name: whole_sizes(self.name, name, merged[name]) for name in self.program.sizes}
        try:
            np.broadcast_shapes(*(size.shape for size in bound.values()))
        except ValueError as error:
            shapes = ", ".join(f"{name} has {size.shape}" for name, size in bound.items())
            raise KernelError(f"sizes of kernel {self.name!r} do not go together: {shapes}; give one shape") from error
        self.program.check(bound)
        self.program.check_launch(bound)
        return bound

    def check_at(self, sizes: Mapping[str, int]) -> None:
        """Checks as `bind` does, for one number of each size: of numpy's arrays, that would take ten times as long."""
        self.program.check(sizes)
        self.program.check_launch(sizes)

    def launch(self) -> Launch:
        """Returns what the device is asked to run."""
        self.bind({})
        ones = dict.fromkeys(self.program.arguments, 1)
        return self.program.launch({**ones, **self._arguments})

    @property
    def counts(self) -> KernelCounts:
        """The counts of what the kernel does, as functions of its sizes."""
        return self.counts_for()

    def counts_for(self, subgroup_size: int | None = None) -> KernelCounts:
        """Returns the counts with executions by sub-groups; only for the kernel's own sizes, where there is nothing
        more general.

        Raises:
            CountingError: for what data decide, without statistics of them.
        """
        if min(self.sizes.values(), default=0) < 0:  # counts for all sizes are for those that are not negative
            return self.counts_at(self.sizes, subgroup_size)
        if self.is_only_known_here(subgroup_size):
            return self.counts_at(self.sizes, subgroup_size)
        is_bound = len(self.sizes) == len(self.program.sizes)
        try:
            counts = self.counts_at({}, subgroup_size)
        except CountingError:
            if not is_bound:
                raise
            return self.counts_at(self.sizes, subgroup_size)
        if is_bound and counts.unknown_addresses:
            with suppress(CountingError):  # as numbers may be harder: remainders of them, say
                here = self.counts_at(self.sizes, subgroup_size)
                return here if here.unknown_addresses < counts.unknown_addresses else counts
        return counts

    def is_only_known_here(self, subgroup_size: int | None = None) -> bool:
        """Returns whether counts at the kernel's own sizes know all addresses, and counts for all sizes do not."""
        counts = self._counts_at_own_sizes_alone(subgroup_size)
        return counts is not None and not counts.unknown_addresses

    def _counts_at_own_sizes_alone(self, subgroup_size: int | None = None) -> KernelCounts | None:
        """Returns the counts at the kernel's own sizes, if those for all sizes do not know all addresses."""
        own = self.sizes
        if not own or len(own) < len(self.program.sizes) or min(own.values()) < 0:
            return None
        if self.program.knows_addresses(subgroup_size, self.deciding or None):
            return None
        with suppress(CountingError):
            return self.counts_at(own, subgroup_size)
        return None

    def counts_at(self, sizes: Mapping[str, int], subgroup_size: int | None = None) -> KernelCounts:
        """Returns the counts at these sizes, or for all sizes where none are given, with the values of other arguments
        that decide on them.
        """
        return self.program.counts_for(subgroup_size, {**sizes, **self.deciding} or None)

    @property
    def deciding(self) -> dict[str, float]:
        """The arguments that are no sizes but decide what is done, of those that have a value."""
        if len(self.program.sizes) == len(self.program.arguments) or self._arguments.keys() <= set(self.program.sizes):
            return {}
        return {name: self._arguments[name] for name in self.program.deciding if name in self._arguments}

    @property
    def label(self) -> str:
        """The kernel in one line: its name, what tells it from its siblings, and its arguments."""
        parts = [self.variant] if self.variant else []
        parts += [f"{name}={value}" for name, value in self._arguments.items()]
        return " ".join([self.name, *parts])

    def _repr_html_(self) -> str:
        tags = [[tag, value] for tag, value in self.tags.items() if tag != "generator"]
        arguments = [
            [name, "size" if name in self.program.sizes else "number", f"{self._arguments.get(name, 'open')}"]
            for name in self.program.arguments
        ]
        tables = [table(["argument", "is a", "value"], arguments)] if arguments else []
        tables += [table(["tag", "value"], tags)] if tags else []
        return titled(self.name, f", {type(self.program).__name__}", *tables)

    def __repr__(self) -> str:
        return brief(self, self.label)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BoundKernel):
            return NotImplemented
        return self._arguments == other._arguments and self.program.content == other.program.content

    def __hash__(self) -> int:
        return hash((self.program.content, tuple(self._arguments.items())))


def _named(name: str) -> dict[str, str]:
    """Returns the tag that names a kernel."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise KernelError(f"{name!r} is no name for a kernel; give one line of text")
    return {"generator": name.strip()}


def _plain(name: str, value: Any) -> float:
    value = value.item() if isinstance(value, np.ndarray) and not value.ndim else value
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise KernelError(f"{name}={value!r} is not a number; a kernel is bound to numbers")
    return int(value) if isinstance(value, int | np.integer) else float(value)


def whole_sizes(kernel: str, name: str, value: Any) -> NDArray[Any]:
    """Returns a size, or several, as an array of whole numbers.

    Raises:
        KernelError: for anything else.
    """
    try:
        array = np.asarray(value)
    except ValueError:  # a ragged list
        array = np.asarray(np.nan)
    if array.dtype.kind == "f" and np.all(np.abs(array) < 2.0**63) and np.all(array == np.floor(array)):
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":  # objects are whole numbers that fit into no type
        raise KernelError(
            f"size {name}={value!r} of kernel {kernel!r} is not a whole number; give an integer below 2**64"
        )
    # Masks and keys may have all of 64 bits.
    return array if array.dtype == np.uint64 and np.any(array >= 2**63) else array.astype(np.int64)
