"""Braces around initial values are taken apart here: which byte of an array, struct or union every value goes to."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from perfmodel.opencl_c import syntax as sx
from perfmodel.opencl_c import types as ts
from perfmodel.opencl_c.reading import clang_tree as ct
from perfmodel.opencl_c.reading.clang_tree import Item
from perfmodel.opencl_c.reading.integer_expressions import characters
from perfmodel.opencl_c.reading.reading_context import ReadingContext


class Leaf(NamedTuple):
    """A leaf is one number or vector of what is initialized.

    Attributes:
        offset: its first byte.
        value: what is to be read there: one item, or several that are a vector's components; or a string's character.
    """

    offset: int
    type: ts.Type
    value: tuple[Item, ...] | sx.Constant


_Leaves: TypeAlias = dict[int, Leaf]


class _Feed:
    """A feed gives the values between braces, one after the other: inner braces may be left out."""

    def __init__(self, items: list[Item]) -> None:
        self.items, self.at = items, 0

    @property
    def head(self) -> Item | None:
        return self.items[self.at] if self.at < len(self.items) else None


class Initializers:
    """Takes apart what is between braces, or a string that an array of characters starts with."""

    def __init__(self, context: ReadingContext) -> None:
        self.context = context

    def leaves(self, type_: ts.Array | ts.Record, item: Item) -> list[Leaf]:
        """Returns the leaves that have a value, by offset; of two values for one byte the last counts."""
        leaves: _Leaves = {}
        if isinstance(type_, ts.Array) and item.kind == ct.KIND.STRING_LITERAL:
            self.string(type_, item, 0, leaves)
        else:
            self.braced(type_, item, 0, leaves)
        return [leaves[offset] for offset in sorted(leaves)]

    def braced(self, type_: ts.Type, braces: Item, offset: int, leaves: _Leaves) -> None:
        with self.context.deeper(braces.start):
            feed = _Feed(braces.children)
            if isinstance(type_, ts.Array) and [each.kind for each in feed.items] == [ct.KIND.STRING_LITERAL]:
                self.string(type_, feed.items[0], offset, leaves)
            elif isinstance(type_, ts.Array | ts.Record):
                self.aggregate(type_, feed, offset, leaves, has_braces=True)
            elif feed.head is not None:
                self.element(type_, feed, offset, leaves)

    def aggregate(
        self, type_: ts.Array | ts.Record, feed: _Feed, offset: int, leaves: _Leaves, has_braces: bool
    ) -> None:
        """Gives the members values from `feed`, one by one or as designated."""
        at, must_name = 0, False
        while (head := feed.head) is not None:
            if self.is_designated(head):
                if not has_braces:
                    return
                feed.at += 1
                at, must_name = self.designated(type_, head, offset, leaves)
                continue
            if at >= _count(type_, self.context):
                return
            if must_name:
                raise self.context.fault("a value follows one that is named inside a member: name it too", head)
            member = self.member(type_, at)
            self.element(member.type, feed, offset + member.offset, leaves)
            at += 1

    def member(self, type_: ts.Array | ts.Record, at: int) -> ts.Field:
        if isinstance(type_, ts.Array):
            return ts.Field("", type_.element, at * type_.element.size)
        return self.context.types.layouts[type_.name].members[at]

    def element(self, type_: ts.Type, feed: _Feed, offset: int, leaves: _Leaves) -> None:
        head = feed.head
        assert head is not None
        if head.kind == ct.KIND.INIT_LIST_EXPR and not isinstance(type_, ts.Vector):
            feed.at += 1
            self.braced(type_, head, offset, leaves)
        elif isinstance(type_, ts.Array) or (isinstance(type_, ts.Record) and self.context.type(head) != type_):
            if isinstance(type_, ts.Array) and head.kind == ct.KIND.STRING_LITERAL:
                feed.at += 1
                self.string(type_, head, offset, leaves)
                return
            self.aggregate(type_, feed, offset, leaves, has_braces=False)
        elif isinstance(type_, ts.Vector):
            leaves[offset] = Leaf(offset, type_, self.components(type_, feed))
        else:
            feed.at += 1
            leaves[offset] = Leaf(offset, type_, (head,))

    def string(self, type_: ts.Array, item: Item, offset: int, leaves: _Leaves) -> None:
        """Gives an array of characters those of a string, as far as they have room."""
        element = type_.element
        try:
            letters = characters(self.context.slice(item))
        except ValueError as error:
            raise self.context.unreadable(item) from error
        if not isinstance(element, ts.Scalar) or element.size != 1:
            raise self.context.unreadable(item)
        for at, letter in enumerate(letters[: type_.length], offset):
            leaves[at] = Leaf(at, element, sx.Constant(ts.CHAR, self.context.place(item), letter))

    def components(self, type_: ts.Vector, feed: _Feed) -> tuple[Item, ...]:
        """Takes a vector's value, or its components where their braces are left out."""
        items: list[Item] = []
        width = 0
        while (head := feed.head) is not None and width < type_.width and not self.is_designated(head):
            found = ts.width_of(self.context.type(head))
            if items and isinstance(self.context.type(head), ts.Vector) and width + found > type_.width:
                break
            feed.at += 1
            items.append(head)
            width += found
        return tuple(items)

    # --- designators

    def is_designated(self, item: Item) -> bool:
        return item.kind == ct.KIND.UNEXPOSED_EXPR and len(item.children) > 1 and self.context.type(item) == ts.VOID

    def designated(self, type_: ts.Array | ts.Record, item: Item, offset: int, leaves: _Leaves) -> tuple[int, bool]:
        """Reads ``.a.b[2] = value``; returns the number of the next member, and whether it is inside one."""
        *path, value = item.children
        current: ts.Type = type_
        inside = 0
        first = -1
        steps = 0
        for step in path:
            if step.kind == ct.KIND.MEMBER_REF and not self.context.tree.spelling(step.cursor):
                continue
            if isinstance(current, ts.Record) and step.kind == ct.KIND.MEMBER_REF:
                field = current.field(self.context.tree.spelling(step.cursor))
            elif isinstance(current, ts.Array) and (index := self.context.tree.integer(step.cursor)) is not None:
                field = self.member(current, index)
            else:
                raise self.context.fault("this way to name a member is not supported; write its value in order", value)
            steps += 1
            inside += field.offset
            if first < 0:
                first = _number(type_, field, self.context)
            current = field.type
        self.element(current, _Feed([value]), offset + inside, leaves)
        return first + 1, steps > 1


def _count(type_: ts.Array | ts.Record, context: ReadingContext) -> int:
    if isinstance(type_, ts.Array):
        return type_.length
    layout = context.types.layouts[type_.name]
    return min(len(layout.members), 1) if layout.is_union else len(layout.members)


def _number(type_: ts.Array | ts.Record, field: ts.Field, context: ReadingContext) -> int:
    """Returns which member of `type_` the field is, or is in."""
    if isinstance(type_, ts.Array):
        return field.offset // type_.element.size if type_.element.size else 0
    members = context.types.layouts[type_.name].members
    for number, member in enumerate(members):
        if member.name == field.name:
            return number
    inside = (not m.name and m.offset <= field.offset < m.offset + m.type.size for m in members)
    return list(inside).index(True)
