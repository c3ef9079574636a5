"""Types of clang's become those of `perfmodel.opencl_c.types`."""

from __future__ import annotations

import re
from typing import NamedTuple

from perfmodel.opencl_c import types as ts
from perfmodel.opencl_c.reading import clang_tree as ct
from perfmodel.opencl_c.reading.clang_tree import RawCursor, RawType, Tree
from perfmodel.opencl_c.reading.preprocessing import Expanded

SPACES = {0: "private", 1: "global", 2: "local", 3: "constant", 4: "private", 5: "generic"}
"""Clang numbers the address spaces so; 0 is one that nothing says."""

DEPTH = 40
"""No type is made of types more deeply; no kernel has a pointer to a pointer to … forty times."""

RECORD_FIELDS = 2000
"""No struct may have more fields with those inside it; one of two structs of two structs … has millions."""

_IMAGE = re.compile(r"OCLIMAGE(1D|2D|3D)(ARRAY|BUFFER|)(?:RO|WO|RW)")

_SCALARS = {
    "BOOL": ts.BOOL,
    "CHAR_S": ts.CHAR,
    "SCHAR": ts.CHAR,
    "CHAR_U": ts.UCHAR,
    "UCHAR": ts.UCHAR,
    "SHORT": ts.SHORT,
    "USHORT": ts.USHORT,
    "INT": ts.INT,
    "UINT": ts.UINT,
    "LONG": ts.LONG,
    "ULONG": ts.ULONG,
    "LONGLONG": ts.LONG,
    "ULONGLONG": ts.ULONG,
    "HALF": ts.HALF,
    "FLOAT": ts.FLOAT,
    "DOUBLE": ts.DOUBLE,
    "LONGDOUBLE": ts.DOUBLE,
    "OCLEVENT": ts.ULONG,
}


class Layout(NamedTuple):
    """A layout has a record's members as they are written, those without a name as well, as initializers count them."""

    members: tuple[ts.Field, ...]
    is_union: bool


class Types:
    """Holds the types of one source; every one of clang's is translated once."""

    def __init__(self, tree: Tree, text: Expanded) -> None:
        self.tree, self.text = tree, text
        self.known: dict[int, ts.Type] = {}
        self.spaces: dict[int, str] = {}
        self.records: dict[str, ts.Record] = {}
        self.layouts: dict[str, Layout] = {}
        self.field_counts: dict[str, int] = {}
        self.depth = 0
        self.by_declaration: dict[int, ts.Record] = {}
        self.open: set[int] = set()

    def of_cursor(self, cursor: RawCursor, offset: int) -> ts.Type:
        return self.of(self.tree.library.clang_getCursorType(cursor), offset)

    def of(self, raw: RawType, offset: int) -> ts.Type:
        key = raw.data[0]
        found = self.known.get(key)
        if found is None:
            self.depth += 1
            if self.depth > DEPTH:
                raise self.text.fault(f"a type is nested more than {DEPTH} deep: use structs or indices", offset)
            found = self._translated(raw, offset)
            self.depth -= 1
            self.known[key] = found
        return found

    def space_of(self, raw: RawType) -> str:
        key = raw.data[0]
        if key not in self.spaces:
            self.spaces[key] = SPACES.get(self.tree.library.clang_getAddressSpace(raw), "unknown")
        return self.spaces[key]

    def is_const(self, raw: RawType) -> bool:
        """Returns whether nobody may change numbers or structs of a type, or an array of them."""
        spelling = self.tree.type_spelling(self.tree.library.clang_getCanonicalType(raw))
        return spelling.startswith("const ") and "*" not in spelling

    def _translated(self, raw: RawType, offset: int) -> ts.Type:
        library = self.tree.library
        canonical = library.clang_getCanonicalType(raw)
        kind = ct.TYPE_KINDS.get(canonical.kind, "INVALID")
        if kind in _SCALARS:
            return _SCALARS[kind]
        if kind == "ENUM":
            declaration = library.clang_getTypeDeclaration(canonical)
            return self.of(library.clang_getEnumDeclIntegerType(declaration), offset)
        if kind == "ATOMIC":
            return self.of(library.clang_Type_getValueType(canonical), offset)
        if kind in ("EXTVECTOR", "VECTOR"):
            element = self.of(library.clang_getElementType(canonical), offset)
            width = library.clang_getNumElements(canonical)
            if isinstance(element, ts.Scalar) and width in ts.WIDTHS:
                return ts.Vector(element, width)
        elif kind == "POINTER":
            pointee = library.clang_getPointeeType(canonical)
            return ts.Pointer(self.of(pointee, offset), self.space_of(pointee))
        elif kind == "CONSTANTARRAY":
            element = self.of(library.clang_getElementType(canonical), offset)
            return ts.Array(element, library.clang_getNumElements(canonical))
        elif kind == "INCOMPLETEARRAY":
            return ts.Array(self.of(library.clang_getElementType(canonical), offset), 0)
        elif kind == "RECORD":
            return self._record(canonical, offset)
        elif kind == "VOID":
            return ts.VOID
        elif kind == "OCLSAMPLER":
            return ts.SAMPLER
        elif found := _IMAGE.fullmatch(kind):
            is_array = found[2] == "ARRAY"
            suffix = f"_{found[2].lower()}" if found[2] else ""
            return ts.Image(f"image{found[1].lower()}{suffix}_t", int(found[1][0]) + is_array, is_array)
        raise self.text.fault(self._refusal(kind, self.tree.type_spelling(raw)), offset)

    def _refusal(self, kind: str, spelling: str) -> str:
        name = spelling.replace("__private ", "")
        if kind == "VARIABLEARRAY":
            return f"an array's length must be known before the kernel runs, but that of {name} is not: use a macro"
        return f"the type {name} is not supported by perfmodel; use numbers, vectors, pointers, arrays and structs"

    # --- structs and unions

    def _record(self, raw: RawType, offset: int) -> ts.Record:
        declaration = self.tree.library.clang_getTypeDeclaration(raw)
        key = ct.key_of(declaration)
        if key not in self.by_declaration:
            if key in self.open:
                name = self._name(raw, declaration)
                reason = f"{name} holds pointers to itself, which no host can fill; use indices instead"
                raise self.text.fault(reason, offset)
            self.open.add(key)
            self.by_declaration[key] = self._laid_out(raw, declaration, offset)
            self.open.discard(key)
        return self.by_declaration[key]

    def _laid_out(self, raw: RawType, declaration: RawCursor, offset: int) -> ts.Record:
        library = self.tree.library
        members = tuple(self._members(declaration, raw))
        size, alignment = library.clang_Type_getSizeOf(raw), library.clang_Type_getAlignOf(raw)
        if size < 0:
            reason = f"{self._name(raw, declaration)} is used, but its members are not known: define it before"
            raise self.text.fault(reason, offset)
        fields: list[ts.Field] = []
        for member in members:
            if member.name:
                fields.append(member)
            elif isinstance(member.type, ts.Record):
                fields += (ts.Field(one.name, one.type, member.offset + one.offset) for one in member.type.fields)
        name = self._name(raw, declaration)
        while name in self.records:
            name += "'"
        self.field_counts[name] = sum(self._count(member.type) for member in members)
        if self.field_counts[name] > RECORD_FIELDS:
            raise self.text.fault(f"{name} has more than {RECORD_FIELDS} members, those inside included", offset)
        record = ts.Record(name, tuple(fields), size, alignment)
        self.layouts[name] = Layout(members, declaration.kind == ct.KIND.UNION_DECL)
        self.records[name] = record
        return record

    def _count(self, type_: ts.Type) -> int:
        while isinstance(type_, ts.Array):
            type_ = type_.element
        return self.field_counts[type_.name] if isinstance(type_, ts.Record) else 1

    def _name(self, raw: RawType, declaration: RawCursor) -> str:
        name = self.tree.type_spelling(raw).split("::")[-1]
        for word in ("const ", "volatile ", "__global ", "__local ", "__constant ", "__private ", "struct ", "union "):
            name = name.replace(word, "")
        if "(" not in name:
            return name
        place = self.text.place(self.tree.extent(declaration)[0])
        kind = "union" if declaration.kind == ct.KIND.UNION_DECL else "struct"
        return f"{kind} of line {place.line}, column {place.column}"

    def _members(self, declaration: RawCursor, raw: RawType) -> list[ts.Field]:
        """Returns the members with their offsets; one without a name lies before the first member of its own.

        clang shows an unnamed member's record only, not the field that it makes, so its offset is found from
        the names inside it.
        """
        library = self.tree.library
        found: list[ts.Field] = []
        children = self.tree.item(declaration).children
        for index, child in enumerate(children):
            if child.kind == ct.KIND.FIELD_DECL:
                name = self.tree.spelling(child.cursor)
                # The type first: clang takes exponential time to find offsets if it is too large.
                type_ = self.of_cursor(child.cursor, child.start)
                offset = library.clang_Cursor_getOffsetOfField(child.cursor) // 8
                if isinstance(type_, ts.Array) and type_.length == 0:
                    raise self.text.fault(f"the member {name} needs a length", child.start)
                found.append(ts.Field(name, type_, offset))
            elif child.kind in (ct.KIND.STRUCT_DECL, ct.KIND.UNION_DECL) and not self._is_named(children, index):
                inner = library.clang_getCursorType(child.cursor)
                record = self.of(inner, child.start)
                if isinstance(record, ts.Record) and record.fields:
                    first = record.fields[0]
                    inside = library.clang_Type_getOffsetOf(raw, first.name.encode()) // 8
                    found.append(ts.Field("", record, inside - first.offset))
        return found

    def _is_named(self, children: list[ct.Item], index: int) -> bool:
        """Returns whether the record declared by a child has a tag or serves the next field."""
        child = children[index]
        if not self.tree.library.clang_Cursor_isAnonymousRecordDecl(child.cursor):
            return True
        return any(one.kind == ct.KIND.FIELD_DECL and one.start == child.start for one in children[index + 1 :])
