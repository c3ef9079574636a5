"""Clang's syntax tree becomes plain Python objects, read at the speed that kernels in a loop need.

libclang's own binding makes several calls and objects for every attribute of every cursor. Here a function's tree is
fetched in one traversal; an extent costs one call, since without macros a location is an offset plus a constant.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

from clang.cindex import CursorKind, Index, TranslationUnit, TypeKind, conf

# The kinds of cursors by their names in the binding, and those of types, as the numbers that the library gives.
KIND = SimpleNamespace(**{name: kind.value for name, kind in vars(CursorKind).items() if isinstance(kind, CursorKind)})
ATTRIBUTES = range(KIND.UNEXPOSED_ATTR, 500)
EXPRESSIONS = range(KIND.UNEXPOSED_EXPR, 200)
TYPE_KINDS: dict[int, str] = {kind.value: kind.name for kind in vars(TypeKind).values() if isinstance(kind, TypeKind)}


class RawCursor(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("xdata", ctypes.c_int), ("data", ctypes.c_void_p * 3))


class RawType(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("data", ctypes.c_void_p * 2))


class _RawString(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("flags", ctypes.c_uint))


class _RawLocation(ctypes.Structure):
    _fields_ = (("pointers", ctypes.c_void_p * 2), ("number", ctypes.c_uint))


class _RawRange(ctypes.Structure):
    _fields_ = (("pointers", ctypes.c_void_p * 2), ("begin", ctypes.c_uint), ("end", ctypes.c_uint))


_Visitor = ctypes.CFUNCTYPE(ctypes.c_int, RawCursor, RawCursor, ctypes.py_object)

_CONTINUE, _RECURSE = 1, 2

_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "clang_visitChildren": (ctypes.c_uint, [RawCursor, _Visitor, ctypes.py_object]),
    "clang_getTranslationUnitCursor": (RawCursor, [ctypes.c_void_p]),
    "clang_getCursorExtent": (_RawRange, [RawCursor]),
    "clang_getCursorType": (RawType, [RawCursor]),
    "clang_getCanonicalType": (RawType, [RawType]),
    "clang_getPointeeType": (RawType, [RawType]),
    "clang_getElementType": (RawType, [RawType]),
    "clang_Type_getValueType": (RawType, [RawType]),
    "clang_getNumElements": (ctypes.c_longlong, [RawType]),
    "clang_getAddressSpace": (ctypes.c_uint, [RawType]),
    "clang_isRestrictQualifiedType": (ctypes.c_uint, [RawType]),
    "clang_getTypeSpelling": (_RawString, [RawType]),
    "clang_getTypeDeclaration": (RawCursor, [RawType]),
    "clang_getResultType": (RawType, [RawType]),
    "clang_getCursorSpelling": (_RawString, [RawCursor]),
    "clang_getCursorReferenced": (RawCursor, [RawCursor]),
    "clang_getCursorDefinition": (RawCursor, [RawCursor]),
    "clang_getCursorBinaryOperatorKind": (ctypes.c_int, [RawCursor]),
    "clang_getCursorUnaryOperatorKind": (ctypes.c_int, [RawCursor]),
    "clang_Cursor_getVarDeclInitializer": (RawCursor, [RawCursor]),
    "clang_Cursor_getOffsetOfField": (ctypes.c_longlong, [RawCursor]),
    "clang_Cursor_isAnonymousRecordDecl": (ctypes.c_uint, [RawCursor]),
    "clang_Cursor_isBitField": (ctypes.c_uint, [RawCursor]),
    "clang_Type_getOffsetOf": (ctypes.c_longlong, [RawType, ctypes.c_char_p]),
    "clang_getEnumDeclIntegerType": (RawType, [RawCursor]),
    "clang_Type_getSizeOf": (ctypes.c_longlong, [RawType]),
    "clang_Type_getAlignOf": (ctypes.c_longlong, [RawType]),
    "clang_getEnumConstantDeclValue": (ctypes.c_longlong, [RawCursor]),
    "clang_Cursor_Evaluate": (ctypes.c_void_p, [RawCursor]),
    "clang_EvalResult_getKind": (ctypes.c_int, [ctypes.c_void_p]),
    "clang_EvalResult_getAsLongLong": (ctypes.c_longlong, [ctypes.c_void_p]),
    "clang_EvalResult_dispose": (None, [ctypes.c_void_p]),
    "clang_getCString": (ctypes.c_char_p, [_RawString]),
    "clang_disposeString": (None, [_RawString]),
    "clang_getFile": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]),
    "clang_getLocationForOffset": (_RawLocation, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint]),
}


@cache
def library() -> Any:
    """Returns libclang with the signatures used here, apart from those that its binding sets."""
    handle = ctypes.CDLL(conf.get_filename())
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(handle, name)
        function.restype, function.argtypes = result, arguments
    return handle


@cache
def index() -> Index:
    return Index.create()


class Item:
    """An item is a cursor with its children, and its extent as offsets in the text (-1 if it stands elsewhere)."""

    __slots__ = ("children", "cursor", "end", "kind", "start")

    def __init__(self, cursor: RawCursor, start: int, end: int) -> None:
        self.cursor, self.kind, self.start, self.end = cursor, cursor.kind, start, end
        self.children: list[Item] = []


class Tree:
    """A tree is a source parsed by clang; `file` is the name that it was parsed under."""

    def __init__(self, unit: TranslationUnit, file: str, length: int) -> None:
        self.unit, self.length = unit, length
        self.library = library()
        handle = ctypes.cast(unit.obj, ctypes.c_void_p)
        self.root: RawCursor = self.library.clang_getTranslationUnitCursor(handle)
        place = self.library.clang_getLocationForOffset(handle, self.library.clang_getFile(handle, file.encode()), 0)
        self.base: int = place.number

    def top(self) -> Iterator[RawCursor]:
        """Returns the declarations at file scope that stand in the text itself."""
        found: list[RawCursor] = []

        def visit(cursor: RawCursor, _parent: RawCursor, _data: object) -> int:
            found.append(cursor)
            return _CONTINUE

        self.library.clang_visitChildren(self.root, _Visitor(visit), None)
        return (cursor for cursor in found if self.extent(cursor)[0] >= 0)

    def extent(self, cursor: RawCursor) -> tuple[int, int]:
        extent = self.library.clang_getCursorExtent(cursor)
        start, end = extent.begin - self.base, extent.end - self.base
        return (start, end) if 0 <= start <= end <= self.length else (-1, -1)

    def shallow(self, cursor: RawCursor) -> Item:
        """Returns a cursor with its children, which have none here."""
        root = Item(cursor, *self.extent(cursor))

        def visit(child: RawCursor, _parent: RawCursor, _data: object) -> int:
            root.children.append(Item(child, *self.extent(child)))
            return _CONTINUE

        self.library.clang_visitChildren(cursor, _Visitor(visit), None)
        return root

    def item(self, cursor: RawCursor) -> Item:
        """Returns the tree below a cursor."""
        get_extent, base, length = self.library.clang_getCursorExtent, self.base, self.length
        root = Item(cursor, *self.extent(cursor))
        path = [(bytes(cursor), root)]

        def visit(child: RawCursor, parent: RawCursor, _data: object) -> int:
            key = bytes(parent)
            while path[-1][0] != key:
                path.pop()
            extent = get_extent(child)
            start, end = extent.begin - base, extent.end - base
            made = Item(child, start, end) if 0 <= start <= end <= length else Item(child, -1, -1)
            path[-1][1].children.append(made)
            path.append((bytes(child), made))
            return _RECURSE

        self.library.clang_visitChildren(cursor, _Visitor(visit), None)
        return root

    def integer(self, cursor: RawCursor) -> int | None:
        """Returns the value of an integer constant expression."""
        result = self.library.clang_Cursor_Evaluate(cursor)
        if not result:
            return None
        is_integer = self.library.clang_EvalResult_getKind(result) == 1
        value: int = self.library.clang_EvalResult_getAsLongLong(result)
        self.library.clang_EvalResult_dispose(result)
        return value if is_integer else None

    def spelling(self, cursor: RawCursor) -> str:
        return self._text(self.library.clang_getCursorSpelling(cursor))

    def type_spelling(self, type_: RawType) -> str:
        return self._text(self.library.clang_getTypeSpelling(type_))

    def _text(self, string: _RawString) -> str:
        text: bytes = self.library.clang_getCString(string) or b""
        self.library.clang_disposeString(string)
        return text.decode(errors="replace")


def key_of(cursor: RawCursor) -> int:
    """Returns what tells declarations apart."""
    key: int = cursor.data[0] or 0
    return key


def key_of_expression(cursor: RawCursor) -> int:
    """Returns what tells expressions apart; 0 for none."""
    key: int = cursor.data[1] or 0
    return key
