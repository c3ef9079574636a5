"""Reads and writes of images become instructions of PTX: a texture's or a surface's."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from perfmodel.basics.errors import SourceError
from perfmodel.basics.image_sampling import Pixels
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.image_properties import image_property
from perfmodel.opencl_c.types import FLOAT, INT, UINT, Image, Scalar, Type, element_of, is_float

_SHAPES = {
    "image1d_t": "1d",
    "image1d_buffer_t": "1d",
    "image1d_array_t": "a1d",
    "image2d_t": "2d",
    "image2d_array_t": "a2d",
    "image3d_t": "3d",
}
_TYPES: Mapping[Type, tuple[str, str]] = {FLOAT: ("f32", "f"), INT: ("s32", "r"), UINT: ("u32", "r")}
"""The types of four numbers that are read or written, in PTX and as operands of ``asm``."""

_ASKED = {f"get_image_{size}": (size,) for size in ("width", "height", "depth")} | {
    "get_image_dim": ("width", "height", "depth")
}
"""The sizes that a device is asked for by functions of OpenCL C."""

_HELD = {0x10B1: (3, 4, 4, 4), 0x10B3: (0, 3, 4, 4), 0x10B6: (2, 1, 0, 3), 0x10B7: (3, 0, 1, 2)}
"""Images of some orders (CL_A, CL_RA, CL_BGRA, CL_ARGB) hold these of the four numbers written, and of 0, the fifth.
NVIDIA's compiler asks each image for its order at each write."""


class Images:
    """Prints what a kernel asks of images.

    Args:
        images: the forms of those that are parameters, by name.
        emit: takes a statement.

    Attributes:
        samplers: the sampler by which each image is read first: its flags, or the name of a parameter.
    """

    def __init__(self, kernel: low.LoweredKernel, images: Mapping[str, Pixels], emit: Callable[[str], None]) -> None:
        self._parameters, self._images, self._emit = kernel.parameters, images, emit
        self._positions = {each.name: position for position, each in enumerate(kernel.parameters)}
        self.samplers: dict[str, int | str] = {}
        self._made = 0

    def read(self, node: low.ReadImage, coordinates: list[str]) -> list[str]:
        """Returns the four numbers of a pixel."""
        name, type_ = self._image(node.access)
        self._note_sampler(name, node.sampler)
        ptx, operand = self._type(element_of(node.type))
        is_whole = not is_float(element_of(node.coordinates.type))
        self._made += 1
        numbers = [f"q{self._made}_{place}" for place in range(4)]
        self._emit(f"{'float' if operand == 'f' else 'int'} {', '.join(numbers)};")
        places = self._places(type_, coordinates, is_whole)
        braces = ", ".join(f"%{4 + 1 + place}" for place in range(len(places)))
        results = ", ".join(f'"={operand}"({each})' for each in numbers)
        given = ", ".join([f'"l"(p{self._positions[name]})', *places])
        opcode = f"tex.{_SHAPES[type_.name]}.v4.{ptx}.{'s32' if is_whole else 'f32'}"
        self._emit(f'asm("{opcode} {{%0, %1, %2, %3}}, [%4, {{{braces}}}];" : {results} : {given});')
        return numbers if not isinstance(node.type, Scalar) else numbers[:1]

    def write(self, statement: low.WriteImage, coordinates: list[str], numbers: list[str]) -> None:
        """Emits the write of a pixel."""
        name, type_ = self._image(statement.access)
        _, operand = self._type(element_of(statement.value.type))
        places = self._places(type_, coordinates, is_whole=True)
        four = self._ordered(name, operand, [*numbers, *["0"] * 4][:4])
        braces = ", ".join(f"%{1 + place}" for place in range(len(places)))
        values = ", ".join(f"%{1 + len(places) + place}" for place in range(4))
        given = ", ".join([*places, *(f'"{operand}"({each})' for each in four)])
        self._emit(
            f'asm volatile("sust.p.{_SHAPES[type_.name]}.v4.b32.zero [%0, {{{braces}}}], {{{values}}};" :: '
            f'"l"(p{self._positions[name]}), {given});'
        )

    def _ordered(self, name: str, operand: str, numbers: list[str]) -> list[str]:
        """Returns a pixel's numbers in the order in which an image holds them."""
        self._made += 1
        order, four = f"q{self._made}", [f"q{self._made}_{place}" for place in range(4)]
        given = ", ".join(f"{each} = {number}" for each, number in zip(four, numbers, strict=True))
        self._emit(f"{'float' if operand == 'f' else 'int'} {given};")
        self._emit(
            f'int {order}; asm("suq.channel_order.b32 %0, [%1];" : "=r"({order}) : "l"(p{self._positions[name]}));'
        )
        cases = (
            f"case {case}: {' '.join(f'{each} = {number};' for each, number in zip(four, held, strict=True))} break;"
            for case, held in ((case, [[*numbers, "0"][place] for place in places]) for case, places in _HELD.items())
        )
        self._emit(f"switch ({order}) {{ {' '.join(cases)} }}")
        return four

    def size(self, node: low.ImageSize) -> list[str]:
        """Returns what ``get_image_width`` or its like says of an image: sizes are asked for on the device, which takes
        time; the rest a launch knows."""
        position = node.image.parameter
        assert position is not None
        parameter = self._parameters[position]
        assert isinstance(parameter.type, Image)
        if asked := _ASKED.get(node.function):
            sizes = [self._asked(position, size) for size in asked[: parameter.type.axes - parameter.type.is_array]]
            return sizes if len(sizes) < 3 else [*sizes, "0"]
        return [str(each) for each in image_property(self._images[parameter.name], parameter.type, node.function)]

    def _asked(self, position: int, size: str) -> str:
        self._made += 1
        self._emit(f'int q{self._made}; asm("txq.{size}.b32 %0, [%1];" : "=r"(q{self._made}) : "l"(p{position}));')
        return f"q{self._made}"

    def _image(self, access: low.Access) -> tuple[str, Image]:
        name = access.variable or ""
        type_ = self._parameters[self._positions[name]].type if name in self._positions else None
        if not isinstance(type_, Image) or type_.name not in _SHAPES:
            raise SourceError("images that are no parameters have no form in CUDA C++ here")
        return name, type_

    def _note_sampler(self, name: str, sampler: low.Expression | None) -> None:
        match sampler:
            case low.Constant():
                self.samplers.setdefault(name, int(sampler.value))
            case low.Read() if sampler.register.parameter is not None:
                self.samplers.setdefault(name, self._parameters[sampler.register.parameter].name)

    @staticmethod
    def _type(element: Type) -> tuple[str, str]:
        if element not in _TYPES:
            raise SourceError(f"pixels of {element} have no form in CUDA C++ here")
        return _TYPES[element]

    @staticmethod
    def _places(type_: Image, coordinates: list[str], is_whole: bool) -> list[str]:
        """Returns coordinates as operands of ``asm``: a layer first, and four where there are three."""
        operand, cast = ("r", "(int)") if is_whole else ("f", "")
        own = [f'"{operand}"({cast}({each}))' for each in coordinates[: type_.axes]]
        if type_.is_array:
            layer = coordinates[type_.axes - 1]
            own = [f'"r"({"" if is_whole else "(int)rintf"}({layer}))', *own[:-1]]
        return [*own, own[-1]] if len(own) == 3 else own
