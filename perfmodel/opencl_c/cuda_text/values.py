"""Expressions of a lowered kernel become CUDA C++: every value a constant of its own, vectors number by number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.cuda_text.functions import KNOWN, TESTS, WHOLE
from perfmodel.opencl_c.cuda_text.images import Images
from perfmodel.opencl_c.cuda_text.types import literal, name_of, number_at, pieces
from perfmodel.opencl_c.operations import power_by_products
from perfmodel.opencl_c.static.known_numbers import Known, computed, known
from perfmodel.opencl_c.types import BOOL, HALF, INT, Pointer, Scalar, Type, Vector, element_of, is_float, width_of
from perfmodel.opencl_c.visitor import Dispatch

Numbers: TypeAlias = list[str]
"""The names of a value's numbers, or the numbers themselves: one, or those of a vector."""

_OF_AXIS = {
    "get_global_id": "(unsigned long long)((long long)(int)blockDim.{0} * (int)blockIdx.{0}) + threadIdx.{0}",
    "get_local_id": "threadIdx.{0}",
    "get_group_id": "blockIdx.{0}",
    "get_local_size": "blockDim.{0}",
    "get_enqueued_local_size": "blockDim.{0}",
    "get_num_groups": "cl_groups_{0}()",
    "get_global_size": "(unsigned long long)cl_groups_{0}() * blockDim.{0}",
    "get_global_offset": "0u",
}
"""NVIDIA's OpenCL computes these so, and adds where the launch begins; the compiler of CUDA C++ makes the same code of
loops only without that. Nothing is known of the numbers of work-groups."""
_LINEAR = "((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x)"
_ITEMS = "(blockDim.x * blockDim.y * blockDim.z)"
_PLAIN = {
    "get_local_linear_id": _LINEAR,
    "get_global_linear_id": (
        "((unsigned long long)(blockIdx.z * blockDim.z + threadIdx.z) * (gridDim.y * blockDim.y)"
        " + (blockIdx.y * blockDim.y + threadIdx.y)) * (gridDim.x * blockDim.x) + blockIdx.x * blockDim.x + threadIdx.x"
    ),
    "get_sub_group_size": f"min(32u, {_ITEMS} - ({_LINEAR} & ~31u))",
    "get_max_sub_group_size": "32u",
    "get_num_sub_groups": f"({_ITEMS} + 31u) / 32u",
    "get_enqueued_num_sub_groups": f"({_ITEMS} + 31u) / 32u",
    "get_sub_group_id": f"{_LINEAR} / 32u",
    "get_sub_group_local_id": f"{_LINEAR} & 31u",
}
_ROUNDED = {"rte": "rni", "rtz": "rzi", "rtp": "rpi", "rtn": "rmi"}
_REGISTERS = {2: "h", 4: "r", 8: "l", -4: "f", -8: "d"}
"""The letters of registers of so many bytes, with a minus of those of floats."""
_SHARED = ("global", "constant", "local")
"""Vectors in these spaces of memory are loaded as a whole, those of private arrays may be in registers."""


class Values:
    """Prints expressions.

    Args:
        emit: takes a statement that computes a part of one.
        registers, objects: what they are called.
        constants: the numbers that registers hold which are set once.
        images: prints what is asked of images.
        axes: of the launch.
        is_relaxed: whether quotients are rough ones.

    Attributes:
        is_conditional: whether what is printed stands under a condition.
    """

    def __init__(
        self,
        emit: Callable[[str], None],
        registers: Mapping[low.Register, Numbers],
        objects: Mapping[low.MemoryObject, str],
        constants: Mapping[low.Register, low.Constant],
        images: Images,
        axes: int,
        is_relaxed: bool,
    ) -> None:
        self.emit, self.registers, self.objects, self.images = emit, registers, objects, images
        self.constants = constants
        self.axes, self.is_relaxed = axes, is_relaxed
        self.is_conditional = False
        self.made = 0
        self._together: tuple[Numbers, list[tuple[str, str]]] | None = None

    def held(self, type_: Type, text: str) -> str:
        """Returns the name of a number that is computed as a text says."""
        self.made += 1
        self.emit(f"{name_of(type_)} v{self.made} = {text};")
        return f"v{self.made}"

    def each(self, type_: Type, texts: Numbers) -> Numbers:
        return [self.held(type_, text) for text in texts]

    def one(self, expression: low.Expression) -> str:
        (found,) = self.of(expression)
        return found

    of = Dispatch[[], Numbers](low.Expression)
    """Returns the numbers of an expression."""

    @of.on(low.Constant)
    def constant(self, node: low.Constant) -> Numbers:
        if isinstance(node.type, Pointer):
            return [f"(char *){int(node.value)}ull"]
        return [literal(element_of(node.type), node.value)] * width_of(node.type)

    @of.on(low.Read)
    def read(self, node: low.Read) -> Numbers:
        return self.registers[node.register]

    @of.on(low.WorkItem)
    def work_item(self, node: low.WorkItem) -> Numbers:
        if node.function == "get_work_dim":
            return [f"({name_of(node.type)}){self.axes}"]
        if node.axis is None:
            return [self.held(node.type, f"({name_of(node.type)})({_PLAIN[node.function]})")]
        texts = [f"({name_of(node.type)})({_OF_AXIS[node.function].format(axis)})" for axis in "xyz"]
        if isinstance(node.axis, low.Constant):
            axis = int(node.axis.value)
            beyond = f"({name_of(node.type)}){int(node.function.endswith(('size', 'groups')))}"
            return [self.held(node.type, texts[axis] if 0 <= axis < len(texts) else beyond)]
        axis_text = self.one(node.axis)
        return [self.held(node.type, f"{axis_text} == 0 ? {texts[0]} : {axis_text} == 1 ? {texts[1]} : {texts[2]}")]

    @of.on(low.Unary)
    def unary(self, node: low.Unary) -> Numbers:
        return self.each(
            node.type, [f"({name_of(node.type)})({node.operator}{each})" for each in self.of(node.operand)]
        )

    @of.on(low.Binary)
    def binary(self, node: low.Binary) -> Numbers:
        if (contracted := self._contracted(node)) is not None:
            return contracted
        left, right = self.of(node.left), self.of(node.right)
        both = [
            self._of_two(node, one, other)
            for one, other in zip(*_alike((left, right), width_of(node.type)), strict=True)
        ]
        return self.each(node.type, both)

    def _contracted(self, node: low.Binary) -> Numbers | None:
        """Returns a sum with a product as one operation, as compilers of OpenCL C join those that stand in one
        expression, so that bodies of loops are shorter; None for all else, and under conditions, of which the compiler
        of CUDA C++ makes selections only where they hold plain sums and products."""
        if self.is_conditional:
            return None
        if node.operator not in ("+", "-") or not is_float(node.type) or element_of(node.type) == HALF:
            return None
        for product, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(product, low.Binary) and product.operator == "*" and not _is_sign_alone(product):
                width = width_of(node.type)
                one, two, three = _alike(map(self.of, (product.left, product.right, other)), width)
                if node.operator == "-":
                    is_first = product is node.left
                    one = one if is_first else [f"-{each}" for each in one]
                    three = [f"-{each}" for each in three] if is_first else three
                return self.each(
                    node.type, [f"cl_fma({', '.join(each)})" for each in zip(one, two, three, strict=True)]
                )
        return None

    def _of_two(self, node: low.Binary, left: str, right: str) -> str:
        operator, name = node.operator, name_of(node.type)
        if operator in ("<<", ">>"):
            return f"({name})({left} {operator} ({right} & {8 * element_of(node.type).size - 1}))"
        if isinstance(node.type, Vector) and operator in ("<", "<=", ">", ">=", "==", "!="):
            return f"({name})({left} {operator} {right} ? -1 : 0)"
        if operator == "/" and self.is_relaxed and name == "float":
            return f"__fdividef({left}, {right})"
        return f"({name})({left} {operator} {right})"

    @of.on(low.Select)
    def select(self, node: low.Select) -> Numbers:
        width = width_of(node.type)
        condition = self.of(node.condition)
        then, otherwise = _alike((self.of(node.then), self.of(node.otherwise)), width)
        tests = [f"{each} < 0" for each in condition] if isinstance(node.condition.type, Vector) else condition * width
        return self.each(node.type, [f"{test} ? {a} : {b}" for test, a, b in zip(tests, then, otherwise, strict=True)])

    @of.on(low.Convert)
    def convert(self, node: low.Convert) -> Numbers:
        numbers = [self._converted(node, each) for each in self.of(node.operand)]
        return self.each(node.type, numbers * (width_of(node.type) if len(numbers) == 1 else 1))

    def _converted(self, node: low.Convert, text: str) -> str:
        source, target = element_of(node.operand.type), element_of(node.type)
        name = name_of(target)
        if target == BOOL:
            return f"{text} != ({name_of(source)})0"
        if source == HALF and target != HALF:
            source, text = Scalar("float", "float32"), f"__half2float({text})"
        if target == HALF and source != HALF:
            return f"__float2half_rn((float){text})"
        if source.is_float and not target.is_float:
            is_clamped = bool(node.saturate) and target.size < INT.size  # larger ones are at any rate
            if is_clamped or node.rounding not in ("", "rtz"):
                text = self._rounded(text, source, target, node.rounding or "rtz", is_clamped)
        elif node.saturate and not source.is_float:
            text = self._saturated(text, source, target)
        return f"({name})({text})"

    def _rounded(self, text: str, source: Scalar, target: Scalar, rounding: str, is_clamped: bool) -> str:
        """Returns the whole number that a float becomes by one instruction, as in OpenCL's drivers."""
        self.made += 1
        name, held = f"v{self.made}", "short" if target.size < INT.size else name_of(target)
        kinds = f"{'s' if target.is_signed else 'u'}{8 * target.size}.f{8 * source.size}"
        words = f"cvt.{_ROUNDED[rounding]}{'.sat' if is_clamped else ''}.{kinds}"
        where = f'"={_REGISTERS[max(target.size, 2)]}"({name}) : "{_REGISTERS[-source.size]}"({text})'
        self.emit(f"{held} {name};")
        self.emit(f'asm("{words} %0, %1;" : {where});')
        return name

    def _saturated(self, text: str, source: Scalar, target: Scalar) -> str:
        bits, own = 8 * target.size, 8 * source.size
        least = -(2 ** (bits - 1)) if target.is_signed else 0
        most = 2 ** (bits - 1) - 1 if target.is_signed else 2**bits - 1
        lowest, highest = (-(2 ** (own - 1)), 2 ** (own - 1) - 1) if source.is_signed else (0, 2**own - 1)
        if most < highest:
            text = f"cl_min({text}, {literal(source, most)})"
        if least > lowest:
            text = f"cl_max({text}, {literal(source, least)})"
        return text

    @of.on(low.Reinterpret)
    def reinterpret(self, node: low.Reinterpret) -> Numbers:
        if turned := _bytes_of_word(node):
            word, places = turned
            selector = sum(place << (4 * byte) for byte, place in enumerate(places))
            (number,) = self.of(word)
            return self.each(node.type, [f"({name_of(node.type)})__byte_perm({number}, 0u, {selector}u)"])
        numbers, source, target = self.of(node.operand), node.operand.type, node.type
        if isinstance(source, Pointer) or isinstance(target, Pointer):
            return self.each(target, [f"({name_of(target)}){each}" for each in numbers])
        if len(numbers) == width_of(target) and element_of(source).size == element_of(target).size:
            return self.each(target, [f"cl_bits<{name_of(target)}>({each})" for each in numbers])
        room = max(source.size, target.size)
        self.made += 1
        name = f"v{self.made}"
        self.emit(f"{name_of(source)} {name}_from[{room // element_of(source).size}] = {{{', '.join(numbers)}}};")
        self.emit(f"{name_of(target)} {name}[{room // element_of(target).size}];")
        self.emit(f"memcpy({name}, {name}_from, {room});")
        return [f"{name}[{place}]" for place in range(width_of(target))]

    @of.on(low.Join)
    def join(self, node: low.Join) -> Numbers:
        return [number for part in node.parts for number in self.of(part)]

    @of.on(low.Pick)
    def pick(self, node: low.Pick) -> Numbers:
        numbers = self.asked_for(node.vector, frozenset(node.components))
        return [numbers[place] for place in node.components]

    @of.on(low.Call)
    def call(self, node: low.Call) -> Numbers:
        name = node.function.replace(".", "_")
        given = [self.of(argument) for argument in node.arguments]
        if node.function in WHOLE:
            return self.each(node.type, self._of_whole(node, given))
        if node.function in ("sincos.0", "sincos.1"):
            return self._sine_or_cosine(node, given[0])
        if name not in KNOWN or any(element_of(each.type) == HALF for each in node.arguments):
            raise SourceError(f"the built-in function {node.function} has no form in CUDA C++")
        if (number := self._known(node)) is not None:
            return [number]
        width = width_of(node.type)
        given = _alike(given, width)
        if node.function == "select" and isinstance(node.type, Vector):
            given[2] = [f"({each} < 0)" for each in given[2]]
        if power := power_by_products(node):
            texts = [" * ".join([each] * power) for each in given[0]]
        else:
            texts = [f"cl_{name}({', '.join(numbers)})" for numbers in zip(*given, strict=True)]
        if node.function in TESTS and isinstance(node.type, Vector):
            texts = [f"-{text}" for text in texts]
        return self.each(node.type, [f"({name_of(node.type)})({text})" for text in texts])

    def _known(self, node: low.Call) -> str | None:
        """Returns the float that a function of numbers is, as compilers of OpenCL C compute it; None for all else."""
        if not isinstance(node.type, Scalar) or not node.type.is_float:
            return None
        given = [
            self.constants.get(each.register, each) if isinstance(each, low.Read) else each for each in node.arguments
        ]
        numbers = [known(each.value, each.type) for each in given if isinstance(each, low.Constant)]
        found = computed(node, numbers) if len(numbers) == len(given) else None
        return literal(node.type, found.value) if isinstance(found, Known) else None

    def _sine_or_cosine(self, node: low.Call, given: Numbers) -> Numbers:
        """Returns the sines or cosines of numbers, which are computed together where the first of the two is asked."""
        which = node.function == "sincos.1"
        if self._together is not None and self._together[0] == given:
            (_, found), self._together = self._together, None
            return [pair[which] for pair in found]
        found = []
        for number in given:
            self.made += 2
            pair = f"v{self.made - 1}", f"v{self.made}"
            self.emit(f"{name_of(element_of(node.type))} {', '.join(pair)};")
            self.emit(f"cl_sincos({number}, {', '.join(pair)});")
            found.append(pair)
        self._together = given, found
        return [pair[which] for pair in found]

    def forget(self, names: Numbers | None = None) -> None:
        """Notes that registers of these names are set anew, or that a block has ended."""
        if self._together is not None and (names is None or set(names) & set(self._together[0])):
            self._together = None

    def _of_whole(self, node: low.Call, given: list[Numbers]) -> Numbers:
        """Returns what a function makes of all numbers of a vector."""
        first = given[0]
        match node.function:
            case "any" | "all":
                joined = (" | " if node.function == "any" else " & ").join(first)
                return [f"(int)(({joined}) < 0)"]
            case "dot":
                return [self._dot(node.type, first, given[1])]
            case "cross":
                a, b = first, given[1]
                three = [f"{a[i]} * {b[j]} - {a[j]} * {b[i]}" for i, j in ((1, 2), (2, 0), (0, 1))]
                return three if len(a) == 3 else [*three, f"({name_of(node.type)})0"]
            case "length" | "fast_length":
                return [self._length(node, first)]
            case "distance" | "fast_distance":
                apart = [f"{one} - {other}" for one, other in zip(first, given[1], strict=True)]
                return [self._length(node, self.each(node.type, apart))]
            case "normalize" | "fast_normalize":
                return self._normalized(node, first)
        return self._shuffled(node, given)

    def _dot(self, type_: Type, one: Numbers, other: Numbers) -> str:
        if not is_float(type_):
            return " + ".join(f"({name_of(type_)}){a} * {b}" for a, b in zip(one, other, strict=True))
        total = f"{one[0]} * {other[0]}"
        for a, b in zip(one[1:], other[1:], strict=True):
            total = f"cl_fma({a}, {b}, {total})"
        return total

    def _length(self, node: low.Call, numbers: Numbers) -> str:
        if len(numbers) == 1:
            return f"cl_fabs({numbers[0]})"
        if node.function.startswith("fast_"):
            return f"cl_sqrt({self._dot(node.type, numbers, numbers)})"
        return f"cl_length({self._table(node.type, numbers)})"

    def _normalized(self, node: low.Call, numbers: Numbers) -> Numbers:
        element = element_of(node.type)
        if len(numbers) == 1:
            return [f"cl_sign({numbers[0]})"]
        if node.function.startswith("fast_"):
            scale = self.held(element, f"cl_rsqrt({self._dot(element, numbers, numbers)})")
            return [f"{each} * {scale}" for each in numbers]
        table = self._table(element, numbers)
        self.emit(f"cl_normalize({table});")
        return [f"{table}[{place}]" for place in range(len(numbers))]

    def _table(self, element: Type, numbers: Numbers) -> str:
        """Returns the name of an array of some numbers."""
        self.made += 1
        self.emit(f"{name_of(element)} v{self.made}[{len(numbers)}] = {{{', '.join(numbers)}}};")
        return f"v{self.made}"

    def _shuffled(self, node: low.Call, given: list[Numbers]) -> Numbers:
        *vectors, places = given
        numbers = [number for vector in vectors for number in vector]
        found = []
        for place in places:
            chosen = self.held(element_of(node.arguments[-1].type), f"{place} & {len(numbers) - 1}")
            text = numbers[-1]
            for position, number in reversed(list(enumerate(numbers[:-1]))):
                text = f"{chosen} == {position} ? {number} : {text}"
            found.append(text)
        return found

    @of.on(low.Address)
    def address(self, node: low.Address) -> Numbers:
        return [f"((char *){self.objects[node.object]})"]

    @of.on(low.Offset)
    def offset(self, node: low.Offset) -> Numbers:
        pointer, index = self.one(node.pointer), self.one(node.index)
        return [self.held(node.type, f"(char *)((cl_bytes<{node.scale}> *)({pointer}) + (long long){index})")]

    def asked_for(self, expression: low.Expression, asked: frozenset[int]) -> Numbers:
        """Returns the numbers of an expression, of which some are asked for."""
        if isinstance(expression, low.Load) and not isinstance(expression, low.ReadImage):
            return self.loaded(expression, asked)
        return self.of(expression)

    @of.on(low.Load)
    def load(self, node: low.Load) -> Numbers:
        return self.loaded(node, frozenset(range(width_of(node.type))))

    def loaded(self, node: low.Load, asked: frozenset[int]) -> Numbers:
        """Returns the numbers of a load, of which some are asked for.

        NVIDIA's OpenCL loads a vector in memory as a whole, be it for one number. The compiler of CUDA C++ leaves out
        what nobody asks for, so that text without an instruction has to seem to need all.
        """
        pointer = self.one(node.pointer)
        found: Numbers = []
        for place, type_, width in pieces(node.access):
            at = self.place_of(pointer, node.access, place)
            self.made += 1
            name = f"v{self.made}"
            self.emit(f"{type_} {name} = {number_at(node.access, type_, at)};")
            parts = [f"{name}.{axis}" for axis in "xyzw"[:width]] if width > 1 else [name]
            own = asked.intersection(range(place, place + width))
            letter = _letter(element_of(node.type)) if width > 1 else None
            if 0 < len(own) < width and letter and node.access.space in _SHARED:
                needed = ", ".join(f'"+{letter}"({part})' for part in parts)
                self.emit(f'asm("" : {needed});')
            is_half = width > 1 and element_of(node.type) == HALF
            found += [f"__ushort_as_half({part})" for part in parts] if is_half else parts
        return found[: width_of(node.type)]

    def place_of(self, pointer: str, access: low.Access, place: int) -> str:
        """Returns the address of one of the numbers that an access moves."""
        return f"{pointer} + {place * element_of(access.type).size}" if place else pointer

    @of.on(low.ReadImage)
    def pixel(self, node: low.ReadImage) -> Numbers:
        return self.images.read(node, self.of(node.coordinates))

    @of.on(low.ImageSize)
    def size_of_image(self, node: low.ImageSize) -> Numbers:
        return self.images.size(node)


def _letter(type_: Scalar) -> str | None:
    """Returns the letter of the registers that a number is held in when it comes from memory; None of bytes."""
    return _REGISTERS.get(-type_.size if type_.is_float and type_ != HALF else type_.size)


def _alike(values: Iterable[Numbers], width: int) -> list[Numbers]:
    """Returns values of one width, scalars as the same number again and again."""
    return [each * width if len(each) < width else each for each in values]


def _is_sign_alone(product: low.Binary) -> bool:
    """Returns whether a factor is 1 or -1, so that there is no product to compute."""
    factors = (each.operand if isinstance(each, low.Unary) else each for each in (product.left, product.right))
    return any(isinstance(each, low.Constant) and abs(each.value) == 1 for each in factors)


def _bytes_of_word(node: low.Reinterpret) -> tuple[low.Expression, tuple[int, ...]] | None:
    """Returns the word, and the places of its bytes, where a word is made of another one's, as by ``as_uint(as_uchar4(
    word).wzyx)``: one instruction puts them in any order."""
    picked = node.operand
    of_bytes = picked.vector if isinstance(picked, low.Pick) else None
    if not isinstance(picked, low.Pick) or not isinstance(of_bytes, low.Reinterpret):
        return None
    word = of_bytes.operand
    are_words = all(
        isinstance(each, Scalar) and each.size == 4 and not each.is_float for each in (node.type, word.type)
    )
    is_of_bytes = isinstance(picked.type, Vector) and element_of(of_bytes.type).size == 1
    return (word, picked.components) if are_words and is_of_bytes and len(picked.components) == 4 else None
