"""A lowered kernel has its calls inlined and its side effects in order: the one form that is counted and emulated.

Expressions are pure, but for `Load`, and all their parts are evaluated. What C evaluates only sometimes (``&&``, a
branch of ``?:`` that reads memory or has effects) has become an `If`. Straight-line code is gathered in `Straight`
blocks, of which all statements are executed equally often: counting a kernel is counting its blocks. So conditions of
`If` and `Loop` are numbers computed by the block before, held in a register.

Values that have no address live in registers. Arrays, structs, unions and variables whose address is taken are
`MemoryObject`s, each with its place in the frame of its space: the work-item's (private), the work-group's (local) or
the program's (constant). A pointer is a number: in private and local memory the byte offset in that frame, in global
and constant memory an address.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from perfmodel.opencl_c.arithmetic import Number as Number
from perfmodel.opencl_c.syntax import Place
from perfmodel.opencl_c.types import Pointer, Type, Vector, element_of, is_float
from perfmodel.opencl_c.visitor import Tree


@dataclass(eq=False)
class Register:
    """A register is a scalar, vector or pointer variable without an address; it is equal only to itself.

    Attributes:
        name: the variable's own, or a made one that starts with ``_``.
        parameter: position among the kernel's parameters whose value it starts with; None if it is none.
        offset: of its number in that parameter, in bytes, where this is a struct; else None.
    """

    name: str
    type: Type
    parameter: int | None = None
    offset: int | None = None


@dataclass(eq=False)
class MemoryObject:
    """A memory object has an address: an array, a struct, a union, or a variable whose address is taken.

    Attributes:
        space: ``private``, ``local``, ``constant``, or ``global`` for variables of the program that can be written.
        offset: in bytes, in the frame of its space; those of the program have one frame.
        initial: of the program's: (byte offset, scalar, vector or pointer type, value) of each leaf that isn't zero.
        parameter: position of the kernel's parameter that it holds (a struct by value); None if it is none.
    """

    name: str
    type: Type
    space: str
    offset: int
    initial: tuple[tuple[int, Type, Number | tuple[Number, ...]], ...] = ()
    parameter: int | None = None

    @property
    def is_of_program(self) -> bool:
        """Returns whether it is there before and after the kernel, and all work-items see it."""
        return self.space in ("constant", "global")


# --- expressions


class Node(Tree):
    type: Type


class Constant(Node):
    """A constant is a number, the same one in all components of a vector."""

    value: Number


class Read(Node):
    register: Register


class WorkItem(Node):
    """This node is ``get_global_id`` or its like; `axis` is None for ``get_work_dim``. An axis that the launch does not
    have has size 1 and id 0.
    """

    function: str
    axis: Expression | None


class Unary(Node):
    """This node is ``-``, ``~``, or ``!`` of a bool."""

    operator: str
    operand: Expression


class Binary(Node):
    """This node is ``+ - * / % & | ^ << >>``, or a comparison ``< <= > >= == !=``.

    Both operands have one type; of shifts, the right one may be another integer, and its low bits count (6.3.j).
    Comparisons of scalars and pointers have the type bool, those of vectors are signed integers, 0 or -1 (6.3.d).
    ``& | ^`` are also for bools. Pointers are compared only.
    """

    operator: str
    left: Expression
    right: Expression


class Select(Node):
    """A bool chooses one of two values; a vector of integers does by component, `then` where the sign bit is set."""

    condition: Expression
    then: Expression
    otherwise: Expression


class Convert(Node):
    """A conversion leads to `type`: bool from any number and back (0, 1), between numbers, a scalar to a vector.

    Attributes:
        rounding: ``rte``, ``rtz``, ``rtp``, ``rtn``, or "" for C's default.
        saturate: out-of-range values become the nearest one.
    """

    operand: Expression
    rounding: str = ""
    saturate: bool = False


class Reinterpret(Node):
    """The bits stay, read as another type of the same size (``as_type``), also between pointers and whole numbers."""

    operand: Expression


class Join(Node):
    """A vector is made of scalars and vectors, one after the other."""

    parts: tuple[Expression, ...]


class Pick(Node):
    """Components of a vector are picked; one gives a scalar."""

    vector: Expression
    components: tuple[int, ...]


class Call(Node):
    """A built-in function of values is called: OpenCL C 1.2, sections 6.12.2 to 6.12.6, 6.12.12 (shuffle).

    `function` is the name in the source. Results by pointer are calls of their own: ``fract.0`` is what
    ``fract`` returns, ``fract.1`` what it stores; so for modf, sincos, frexp, remquo, lgamma_r.
    """

    function: str
    arguments: tuple[Expression, ...]


class Address(Node):
    """An address is where a memory object starts; `type` is the pointer's."""

    object: MemoryObject


class Offset(Node):
    """A pointer is moved by ``index * scale`` bytes; the index is a scalar integer, taken as 64 bits."""

    pointer: Expression
    index: Expression
    scale: int


class Load(Node):
    """A load gives what is in memory at a pointer. A vector of three reads three components."""

    pointer: Expression
    access: Access


class ReadImage(Load):
    """A pixel is read from an image: the result has its four numbers.

    The pointer stands for where the pixel is as if all images had rows of `IMAGE_ROW` pixels.

    Attributes:
        sampler: a number, or a parameter; None without.
        coordinates: of the pixel, whole numbers or floats.
    """

    sampler: Expression | None
    coordinates: Expression


class ImageSize(Node):
    """A property of an image is asked for by ``get_image_width`` or its like."""

    image: Register
    function: str


IMAGE_ROW = 1 << 16

Expression: TypeAlias = (
    Constant
    | Read
    | WorkItem
    | Unary
    | Binary
    | Select
    | Convert
    | Reinterpret
    | Join
    | Pick
    | Call
    | Address
    | Offset
    | Load
    | ReadImage
    | ImageSize
)


@dataclass(eq=False)
class Access:
    """An access is one place in the source that touches memory; it is equal only to itself.

    Attributes:
        number: counts the accesses of a kernel, from 0.
        direction: ``load``, ``store`` or ``atomic``.
        space: ``global``, ``local``, ``constant`` or ``private``.
        type: what is moved: a scalar, vector or pointer.
        variable: the argument or memory object that it is in, where that can be told; else None.
        alignment: bytes that the address must be a multiple of.
        text: as it stands in the source, for people.
        is_kept: whether it loads a vector only to store it again with other components changed.
        is_filtered: whether it mixes the pixels around a place of an image.
    """

    number: int
    direction: str
    space: str
    type: Type
    variable: str | None
    alignment: int
    text: str
    place: Place
    is_kept: bool = False
    is_filtered: bool = False

    @property
    def bytes(self) -> int:
        """Returns how many bytes it moves; an aligned vector of three moves the fourth along."""
        if isinstance(self.type, Vector) and self.type.width == 3 and self.alignment < self.type.alignment:
            return 3 * self.type.element.size
        return self.type.size

    @property
    def dtype(self) -> str:
        """Returns numpy's name of the type of its elements."""
        return "uint64" if isinstance(self.type, Pointer) else element_of(self.type).dtype


# --- statements


class Assign(Tree):
    """A register, or some of its components, in order, gets a value."""

    register: Register
    value: Expression
    components: tuple[int, ...] | None = None


class Store(Tree):
    pointer: Expression
    value: Expression
    access: Access


class WriteImage(Store):
    """A pixel of an image gets a value; see `ReadImage`."""

    coordinates: Expression


class Atomic(Tree):
    """An atomic does ``add sub xchg inc dec cmpxchg min max and or xor load store``.

    `result`, unless None, gets the old value.
    """

    operation: str
    pointer: Expression
    operands: tuple[Expression, ...]
    result: Register | None
    access: Access


class Barrier(Tree):
    """All work-items of the group meet; `number` counts the barriers of a kernel.

    One that is not `is_of_group` is met by those of a sub-group, who need not wait, and has no number.
    """

    number: int
    place: Place
    is_of_group: bool = True


class Collective(Tree):
    """Those work-items of a group, or else of a sub-group, that are active exchange values.

    Attributes:
        operation: ``reduce scan_inclusive scan_exclusive clustered_reduce broadcast broadcast_first shuffle shuffle_xor
            shuffle_up shuffle_down rotate clustered_rotate all any all_equal elect`` …, as the functions are called.
        by: the operation that joins values: ``add mul min max and or xor logical_and`` …; else empty.
        kind: ``reduce``, ``scan``, ``broadcast``, ``shuffle`` or ``vote``.
    """

    operation: str
    by: str
    kind: str
    is_of_group: bool
    operands: tuple[Expression, ...]
    result: Register
    place: Place


Simple: TypeAlias = Assign | Store | WriteImage | Atomic | Barrier | Collective


class Straight(Tree):
    """A basic block's statements are executed one after the other, all equally often; `number` counts from 0.

    `places` are where its statements stand; none of what a compiler moved there. `calls` are the ways by which control
    comes to the functions that they stand in: the places of calls, that of the function itself first, up to one in the
    kernel; an empty one for the kernel's own statements.
    """

    number: int
    statements: tuple[Simple, ...]
    place: Place
    places: tuple[Place, ...] = ()
    calls: tuple[tuple[Place, ...], ...] = ()


class If(Tree):
    """A branch has a bool register as `condition`; `number` counts the branches (ifs and loops) of a kernel, from 0.

    `is_choice` says that it comes from ``&&``, ``||`` or ``?:``.
    """

    number: int
    condition: Register
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]
    place: Place
    is_choice: bool = False


class Loop(Tree):
    """An iteration is `test`, the end unless `condition`, `body`, `step`; the first one of a ``do`` loop has no test.

    Attributes:
        label: leaving it ends the loop. The body's ``continue`` leaves a `Scope` around the body.
        condition: a register of type bool that `test` computes.
        name: the loop's variable, if there is one that `step` changes; else made from the line. Of several loops over
            one variable, the others are called ``i__2``, ``i__3`` …
        unroll: the number asked for by a pragma, 0 for all, None if none.
    """

    number: int
    label: str
    test: tuple[Statement, ...]
    condition: Register
    body: tuple[Statement, ...]
    step: tuple[Statement, ...]
    is_do: bool
    name: str
    unroll: int | None
    place: Place

    @property
    def variable(self) -> str:
        """Returns the name without the number that tells it from other loops."""
        return self.name.split("__")[0]


class Scope(Tree):
    """A scope holds statements that can be left for their end."""

    label: str
    body: tuple[Statement, ...]


class Leave(Tree):
    """This statement ends the surrounding loop or scope of its label, and is always the last of its list."""

    label: str


Statement: TypeAlias = Straight | If | Loop | Scope | Leave


@dataclass(frozen=True)
class Parameter:
    """A kernel's parameter is a scalar, vector, struct or pointer by its `type`; what a pointer that `is_restrict`
    leads to is reached through no other."""

    name: str
    type: Type
    is_restrict: bool = False


@dataclass(frozen=True, eq=False)
class LoweredKernel:
    """This is a kernel of a source in its lowered form.

    Attributes:
        registers, objects: all of them.
        private_bytes, local_bytes, constant_bytes: sizes of the frames, the last one that of the program's variables.
        accesses, branches, blocks, barriers: how many there are.
        work_group, subgroup_size: of ``reqd_work_group_size`` and ``intel_reqd_sub_group_size``.
        is_exact: whether it was built with ``-cl-fp32-correctly-rounded-divide-sqrt``.
        takes_constants: whether it, or another kernel of the source, takes a pointer to constant memory.
    """

    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Statement, ...]
    registers: tuple[Register, ...]
    objects: tuple[MemoryObject, ...]
    private_bytes: int
    local_bytes: int
    constant_bytes: int
    accesses: tuple[Access, ...]
    branches: int
    blocks: int
    barriers: int
    work_group: tuple[int, int, int] | None = None
    subgroup_size: int | None = None
    is_exact: bool = False
    takes_constants: bool = False


def direction_of(node: Load | Store | Atomic) -> str:
    """Returns what an access is counted as: ``load``, ``store`` or ``atomic``."""
    if isinstance(node, Atomic):
        return node.operation if node.operation in ("load", "store") else "atomic"
    return node.access.direction


def may_divide_by_zero(expression: Expression) -> bool:
    """Returns whether an expression divides whole numbers by what may be zero."""
    if not isinstance(expression, Binary) or expression.operator not in "/%" or is_float(expression.type):
        return False
    return not (isinstance(expression.right, Constant) and expression.right.value)
