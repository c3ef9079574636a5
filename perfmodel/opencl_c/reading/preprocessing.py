"""The preprocessor handles macros, conditions and includes of OpenCL C, and keeps the place of every character.

An own one, since clang's own hides which text an expression has once macros are expanded, and those for Python lose
lines, print to stderr and cannot be stopped by a macro that doubles itself thirty times.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfmodel.basics.errors import SourceError, nearest
from perfmodel.opencl_c.reading import integer_expressions
from perfmodel.opencl_c.reading.macros import Expander, Macro, defined
from perfmodel.opencl_c.reading.tokens import (
    NAME,
    NEWLINE,
    QUOTE,
    SPACE,
    STRING,
    Token,
    fault,
    lines_of,
    stripped,
    tokens_of,
    without_spaces,
)
from perfmodel.opencl_c.syntax import Place

CHARACTERS = 16_000_000
"""No source is longer, its includes and expanded macros taken together; reading so much takes some 20 s."""

INCLUDE_DEPTH = 40
NESTED_CONDITIONS = 200

_DIRECTIVES = ("define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "include", "pragma", "error")
_HAS = frozenset(("__has_builtin", "__has_attribute", "__has_extension", "__has_feature"))
"""Compilers are asked by these for what they have beyond OpenCL C; here, nothing."""


@dataclass
class Expanded:
    """Holds text without directives, comments and macros.

    Attributes:
        unrolls: (offset, factor) of every ``#pragma unroll``, 0 where it gives no factor.
    """

    text: str = ""
    unrolls: list[tuple[int, int]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)

    def place(self, offset: int) -> Place:
        """Returns where the character at `offset` comes from."""
        at = bisect_right(self.starts, offset) - 1
        if at < 0:
            return self.places[0] if self.places else Place("", 1, 1)
        file, line, column = self.places[at]
        return Place(file, line, column + offset - self.starts[at])

    def fault(self, reason: str, offset: int) -> SourceError:
        return SourceError(reason, *self.place(offset))


def preprocess(source: str, file: str, macros: Mapping[str, Macro], folders: Sequence[Path]) -> Expanded:
    """Returns `source` with `macros` given, expanded; includes are searched in `folders` alone."""
    run = _Preprocessor(dict(macros), [folder.resolve() for folder in folders])
    run.read(source.removeprefix("\ufeff"), file, None)
    text = run.result.text = "".join(run.pieces)
    if not text.isascii():
        offset = next(offset for offset, letter in enumerate(text) if not letter.isascii())
        raise run.result.fault(f"the character {text[offset]!r} stands outside a comment; write it in ASCII", offset)
    if "\0" in text:
        raise run.result.fault("there is a zero byte in the source; remove it", text.index("\0"))
    return run.result


@dataclass
class _Condition:
    """An ``#if`` that is open has this state: whether its text counts, and whether one of its branches did already."""

    token: Token
    is_active: bool
    was_active: bool
    has_else: bool = False


class _Preprocessor:
    def __init__(self, macros: dict[str, Macro], folders: list[Path]) -> None:
        self.expander = Expander(macros)
        self.folders = folders
        self.result = Expanded()
        self.pieces: list[str] = []
        self.length = 0
        self.read_length = 0
        self.depth = 0
        self.once: set[Path] = set()
        self.pending: list[Token] = []
        self.conditions: list[_Condition] = []
        self.renumbered: tuple[int, str] | None = None

    # --- files

    def read(self, text: str, file: str, path: Path | None) -> None:
        self.read_length += len(text)
        self.expander.read(len(text))
        if self.read_length > CHARACTERS:
            reason = (
                f"the source has more than {CHARACTERS} characters with its includes; leave out what it does without"
            )
            raise SourceError(reason, file, 1, 1)
        conditions_before = len(self.conditions)
        by, name = 0, file
        for line in lines_of(text, file, self.expander):
            if by or name != file:  # behind a #line
                line = [token._replace(line=token.line + by, file=name) for token in line]
            self.take(line, path)
            if self.renumbered is not None:
                (to, name), at = self.renumbered, line[0].line
                by, self.renumbered = by + to - at - 1, None
        self.flush()
        if len(self.conditions) > conditions_before:
            token = self.conditions[-1].token
            raise fault("the condition is never closed: end it with #endif", token)

    def take(self, line: list[Token], path: Path | None) -> None:
        first = line[1] if line[0].kind == SPACE and len(line) > 1 else line[0]
        if first.text == "#":
            self.directive(without_spaces(line), line, path)
            self.pending.append(line[-1]._replace(kind=NEWLINE, text="\n"))
        elif not self.conditions or self.conditions[-1].is_active:
            self.pending.extend(line)

    def include(self, line: list[Token], place: Token, path: Path | None) -> None:
        if not line or (line[0].kind != STRING and line[0].text != "<"):
            line = without_spaces(self.expander.expand(list(line)))
        if line and line[0].kind == STRING:
            name, is_system = line[0].text[1:-1], False
        elif len(line) > 2 and line[0].text == "<" and line[-1].text == ">":
            name, is_system = "".join(token.text for token in line[1:-1]), True
        else:
            raise fault('#include names no file: write #include "file" or #include <file>', place)
        found = self.find(name, place, None if is_system or path is None else path.parent)
        if found in self.once:
            return
        if self.depth >= INCLUDE_DEPTH:
            raise fault(f"includes are nested more than {INCLUDE_DEPTH} deep: {name!r} may include itself", place)
        try:
            with found.open("rb") as stream:
                text = stream.read(4 * CHARACTERS + 1).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise fault(f"the file {name!r} cannot be read as UTF-8 text: {error}", place) from error
        self.flush()
        self.depth += 1
        self.read(text, str(found), found)
        self.depth -= 1

    def find(self, name: str, place: Token, beside: Path | None) -> Path:
        """Returns the file `name` of an include, which must lie in one of the folders."""
        if not name or "\0" in name:
            raise fault(f"{name!r} cannot be included: it names no file", place)
        has_left = False
        for folder in ([beside] if beside else []) + self.folders:
            found = (folder / name).resolve()
            if not any(found.is_relative_to(one) for one in self.folders):
                has_left = True
            elif found.is_file():
                return found
        if has_left:
            raise fault(f"{name!r} lies outside the folders given for includes: give its own folder too", place)
        known = [entry.name for folder in self.folders if folder.is_dir() for entry in folder.iterdir()]
        where = ", ".join(map(str, self.folders)) or "the folders that are given: give its own by -I or folders"
        raise fault(f"the file {name!r} of an #include is not in {where}{nearest(name, known)}", place)

    # --- directives

    def directive(self, line: list[Token], raw: list[Token], path: Path | None) -> None:
        if len(line) == 1:
            return
        name, rest = line[1], line[2:]
        if name.text in ("if", "ifdef", "ifndef", "elif", "else", "endif"):
            self.condition(name, rest)
        elif self.conditions and not self.conditions[-1].is_active:
            return
        elif name.text == "define":
            start = next(index for index, token in enumerate(raw) if token is name)
            macro = defined(stripped(raw[start + 1 :]), name)
            self.flush()
            self.expander.macros[macro.name] = macro
        elif name.text == "undef":
            self.flush()
            self.expander.macros.pop(_name(rest, name), None)
        elif name.text == "include":
            self.include(rest, name, path)
        elif name.text == "pragma":
            if rest and rest[0].text == "once" and path is not None:
                self.once.add(path)
            self.flush()
            self.pragma(rest)
        elif name.text == "error":
            message = " ".join(token.text for token in rest)
            raise fault(f"the source stops by itself: #error {message}", name)
        elif name.text == "line":
            self.renumber(rest, name)
        elif name.text not in ("warning", "ident"):
            raise fault(f"there is no directive #{name.text}{nearest(name.text, _DIRECTIVES)}", name)

    def renumber(self, rest: list[Token], place: Token) -> None:
        """Follows ``#line 7 "file"``: the next line is called so."""
        rest = without_spaces(self.expander.expand(list(rest)))
        if not rest or not re.fullmatch("[0-9]{1,7}", rest[0].text) or (len(rest) > 1 and rest[1].kind != STRING):
            raise fault('#line gives no number of a line: write #line 7 or #line 7 "file"', place)
        self.renumbered = int(rest[0].text), rest[1].text[1:-1] if len(rest) > 1 else place.file

    def condition(self, name: Token, rest: list[Token]) -> None:
        kind, stack = name.text, self.conditions
        if kind in ("if", "ifdef", "ifndef"):
            if len(stack) >= NESTED_CONDITIONS:
                raise fault(f"conditions are nested more than {NESTED_CONDITIONS} deep", name)
            is_reached = not stack or stack[-1].is_active
            is_active = is_reached and self.holds(kind, rest, name)
            stack.append(_Condition(name, is_active, is_active or not is_reached))
            return
        if not stack or (stack[-1].has_else and kind != "endif"):
            raise fault(f"#{kind} belongs to no #if", name)
        current = stack[-1]
        if kind == "endif":
            stack.pop()
            return
        current.is_active = not current.was_active and (kind == "else" or self.holds("if", rest, name))
        current.was_active |= current.is_active
        current.has_else = kind == "else"

    def holds(self, kind: str, rest: list[Token], place: Token) -> bool:
        self.flush()
        if kind != "if":
            return (_name(rest, place) in self.expander.macros) == (kind == "ifdef")
        return integer_expressions.evaluate(self.value_tokens(rest), place) != 0

    def value_tokens(self, line: list[Token]) -> list[Token]:
        """Returns a condition's tokens with ``defined`` and what compilers have answered, and macros expanded."""
        answered: list[Token] = []
        at = 0
        while at < len(line):
            token = line[at]
            at += 1
            if token.text == "defined":
                has_parenthesis = at < len(line) and line[at].text == "("
                at += has_parenthesis
                name = _name(line[at:], token)
                at += 1 + has_parenthesis
                token = token._replace(kind="number", text=str(int(name in self.expander.macros)))
            elif token.text in _HAS and at < len(line) and line[at].text == "(":
                at = next((here + 1 for here in range(at, len(line)) if line[here].text == ")"), len(line))
                token = token._replace(kind="number", text="0")
            answered.append(token)
        return without_spaces(self.expander.expand(answered))

    def pragma(self, line: list[Token]) -> None:
        """Keeps unrolling; other pragmas (extensions, contraction) change nothing that is modelled."""
        if not line or line[0].text not in ("unroll", "nounroll"):
            return
        factor = int(line[0].text == "nounroll")
        if len(line) > 1 and not factor:
            tokens = self.value_tokens(line[1:])
            if any(token.kind == NAME for token in tokens):
                return
            factor = integer_expressions.evaluate(tokens, line[0])
        self.result.unrolls.append((self.length, max(factor, 0)))

    # --- output

    def flush(self) -> None:
        """Puts out the text up to here, with the macros of here."""
        if not self.pending:
            return
        tokens, self.pending = self.expander.expand(self.pending), []
        before = None
        at = 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            if token.text == "_Pragma":
                used, line = _pragma_operator(tokens[at:])
                if used:
                    self.pragma(line)
                    at += used
                    continue
            if token.kind == QUOTE:
                raise fault(f"the {token.text} is never closed on its line", token)
            kind, text = token.kind, token.text
            if before and (token.hidden or before.hidden) and SPACE not in (kind, before.kind):
                self.put(" ")
            self.mark(token)
            if kind == SPACE and ("\n" in text or not text.isspace()):
                text = " "
            self.put(text)
            before = token

    def mark(self, token: Token) -> None:
        """Remembers the place of the token to be put out, unless it follows from the one before."""
        result = self.result
        place = token[2:5]
        if result.starts:
            file, line, column = result.places[-1]
            if place == (file, line, column + self.length - result.starts[-1]):
                return
        result.starts.append(self.length)
        result.places.append(Place(*place))

    def put(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)
        if self.length > CHARACTERS:
            place = self.result.places[-1]
            raise SourceError(f"with its macros expanded, the source has more than {CHARACTERS} characters", *place)


def _pragma_operator(tokens: list[Token]) -> tuple[int, list[Token]]:
    """Returns how many tokens of ``_Pragma ( "…" )`` follow the name, and the pragma in them."""
    significant = [(index, token) for index, token in enumerate(tokens[:8]) if token.kind not in (SPACE, NEWLINE)]
    texts = [token.text for _, token in significant[:3]]
    if len(texts) < 3 or texts[0] != "(" or texts[2] != ")" or significant[1][1].kind != STRING:
        return 0, []
    inner = significant[1][1]
    line = [token._replace(line=inner.line, column=inner.column) for token in tokens_of(texts[1][1:-1], inner.file)]
    return significant[2][0] + 1, without_spaces(line)


def _name(line: list[Token], place: Token) -> str:
    if not line or line[0].kind != NAME:
        directive = place.text if place.text == "defined" else f"#{place.text}"
        raise fault(f"{directive} needs the name of a macro", place)
    return line[0].text
