"""Reads and writes of images are lowered here: accesses by coordinates, of which counting sees where they lie."""

from __future__ import annotations

from perfmodel.basics.errors import SourceError
from perfmodel.basics.image_sampling import LINEAR
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c.lowering.builder import Emission
from perfmodel.opencl_c.lowering.expressions import Expressions
from perfmodel.opencl_c.lowering.folding import converted
from perfmodel.opencl_c.lowering.lvalues import InMemory
from perfmodel.opencl_c.lowering.source_text import text_of
from perfmodel.opencl_c.types import INT, LONG, SAMPLER, UINT, Image, Pointer, Scalar, Vector, element_of


class Images:
    """Lowers built-in functions of images."""

    def __init__(self, out: Emission, expressions: Expressions) -> None:
        self.out, self.expressions, self.places = out, expressions, expressions.places

    def value(self, expression: syn.BuiltinCall) -> low.Expression:
        image, *arguments = expression.arguments
        register = self.register(image)
        if expression.name.startswith("get_"):
            return low.ImageSize(expression.type, register, expression.name)
        is_write = expression.name.startswith("write_")
        sampler: low.Expression | None = None
        if not is_write and arguments[0].type == SAMPLER:
            sampler = self.sampler(arguments.pop(0))
        coordinates = self.expressions.value(arguments[0])
        type_ = arguments[-1].type if is_write else expression.type
        assert isinstance(image.type, Image)
        assert isinstance(type_, Scalar | Vector)
        pointer = self.pointer(register, image.type, coordinates, type_)
        place = InMemory(pointer, type_, type_.alignment)
        text = text_of(expression)
        if is_write:
            value = self.expressions.value(arguments[-1])
            access = self.places.access("store", place, text)
            self.out.emit(low.WriteImage(pointer, value, access, coordinates))
            return low.Constant(INT, 0)
        is_filtered = isinstance(sampler, low.Constant) and bool(int(sampler.value) & LINEAR)
        access = self.places.access("load", place, text, is_filtered=is_filtered)
        return low.ReadImage(type=type_, pointer=pointer, access=access, sampler=sampler, coordinates=coordinates)

    def register(self, image: syn.Expression) -> low.Register:
        while isinstance(image, syn.Convert):
            image = image.operand
        if isinstance(image, syn.Name):
            storage = self.out.frame.variables[image.variable]
            if isinstance(storage, low.Register):
                return storage
        raise SourceError(f"{text_of(image)} is no image that perfmodel knows; name a parameter", *image.place)

    def sampler(self, sampler: syn.Expression) -> low.Expression:
        """Returns the number of a sampler that the source gives, or the parameter."""
        while isinstance(sampler, syn.Convert):
            sampler = sampler.operand
        if isinstance(sampler, syn.Constant):
            return low.Constant(UINT, int(sampler.value))
        if isinstance(sampler, syn.Name):
            storage = self.out.frame.variables.get(sampler.variable)
            if isinstance(storage, low.Register):
                return low.Read(storage.type, storage)
            initial = sampler.variable.initial
            if initial is not None and not isinstance(initial, syn.InitializerList):
                return self.sampler(initial)
        return self.expressions.value(sampler)

    def pointer(
        self, image: low.Register, type_: Image, coordinates: low.Expression, pixel: Scalar | Vector
    ) -> low.Expression:
        """Returns where a pixel would lie if every row had as many pixels."""
        index: low.Expression = low.Constant(LONG, 0)
        for axis in range(type_.axes):
            along = converted(_whole(_component(coordinates, axis)), LONG)
            step = low.Constant(LONG, low.IMAGE_ROW**axis)
            index = low.Binary(LONG, "+", index, low.Binary(LONG, "*", along, step)) if axis else along
        return low.Offset(Pointer(pixel, "global"), low.Read(image.type, image), index, pixel.size)


def _component(coordinates: low.Expression, axis: int) -> low.Expression:
    if not isinstance(coordinates.type, Vector):
        return coordinates
    if isinstance(coordinates, low.Join):
        at = 0
        for part in coordinates.parts:
            width = part.type.width if isinstance(part.type, Vector) else 1
            if at <= axis < at + width:
                return _component(part, axis - at)
            at += width
    return low.Pick(element_of(coordinates.type), coordinates, (axis,))


def _whole(coordinate: low.Expression) -> low.Expression:
    """Returns a coordinate as a whole number; ``i + 0.5f`` is i where it is one."""
    if not element_of(coordinate.type).is_float:
        return coordinate
    inner = coordinate
    if isinstance(inner, low.Binary) and inner.operator == "+" and isinstance(inner.right, low.Constant):
        inner = inner.left if inner.right.value == 0.5 else inner
    if isinstance(inner, low.Convert) and not element_of(inner.operand.type).is_float:
        return inner.operand
    return low.Convert(INT, coordinate)
