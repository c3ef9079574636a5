"""Macros are defined here, and text with their calls is expanded."""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel.opencl_c.reading.tokens import (
    LINE,
    NAME,
    NEWLINE,
    NUMBER,
    SPACE,
    STRING,
    Token,
    fault,
    stripped,
    tokens_of,
)

TOKENS, TOKENS_PER_CHARACTER = 100_000, 10
"""No kernel's macros make more than this and so many for each character that is read: rounds of a hash that are written
out make eight. A macro that doubles itself without end reaches this within a second."""

CHARACTERS = 1_000_000
"""No whole source may have more: what macros paste together or make strings of doubles with every macro."""

DEPTH = 60
CHAIN = 300
"""No token may come from more macros, each out of the text of the one before."""

_SPECIAL = frozenset(("__LINE__", "__FILE__", "__COUNTER__", "_Pragma"))
_REST = "__VA_ARGS__"


@dataclass(frozen=True)
class Macro:
    """A macro without arguments has None as its parameters."""

    name: str
    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]
    is_variadic: bool = False


def defined(line: list[Token], place: Token) -> Macro:
    """Returns the macro of what follows ``#define``."""
    if not line or line[0].kind != NAME:
        raise fault("#define needs a name", place)
    name, rest = line[0], line[1:]
    if name.text == "defined":
        raise fault("'defined' cannot be the name of a macro", name)
    parameters: list[str] = []
    is_variadic = False
    if not rest or rest[0].text != "(":
        return Macro(name.text, None, _placeless(rest))
    at = 1
    texts: list[str] = []
    while at < len(rest) and rest[at].text != ")":
        if rest[at].kind != SPACE:
            texts.append(rest[at].text)
        at += 1
    rest_name = _REST
    if len(texts) > 1 and texts[-1] == "..." and texts[-2].isidentifier():  # GCC's way to name the rest
        rest_name = texts.pop(-2)
    if at == len(rest):
        raise fault(f"the parameters of the macro {name.text} are not closed by ')'", name)
    for index, text in enumerate(texts):
        is_name = text == "..." or text.isidentifier()
        if index % 2 == is_name or is_name == (text == ","):
            raise fault(f"the parameters of the macro {name.text} must be names with commas between", name)
        if text == "...":
            is_variadic = True
            parameters.append(rest_name)
        elif text != ",":
            parameters.append(text)
    if texts and texts[-1] == ",":
        raise fault(f"the parameters of the macro {name.text} must be names with commas between", name)
    return Macro(name.text, tuple(parameters), _placeless(rest[at + 1 :]), is_variadic)


def _placeless(body: list[Token]) -> tuple[Token, ...]:
    """Takes places from a macro's own text, which says that it stands at the call; arguments keep theirs."""
    return tuple(token._replace(file="", line=0, column=0) for token in stripped(body))


def macro_of_option(definition: str) -> Macro:
    """Returns the macro of ``-D``: ``NAME`` is 1, ``NAME=value``, ``NAME(x)=value``."""
    head, sign, value = definition.partition("=")
    place = Token(kind=NAME, text=head, file=f"the build option -D{definition}", line=0, column=0)
    tokens = list(tokens_of(f"{head} {value if sign else '1'}", place.file))
    if any(token.kind == NEWLINE for token in tokens):
        raise fault("a macro's value is one line", place)
    return defined(stripped(tokens), place)


class Expander:
    """Expands macros as C does: a macro is not expanded again in what it made itself."""

    def __init__(self, macros: dict[str, Macro]) -> None:
        self.macros = macros
        self.made = 0
        self.allowed = TOKENS
        self.joined = 0
        self.depth = 0
        self.counter = 0

    def __contains__(self, name: object) -> bool:
        return name in self.macros or name in _SPECIAL

    def expand(self, tokens: list[Token]) -> list[Token]:
        macros = self.macros
        done: list[Token] = []
        todo = tokens[::-1]
        while todo:
            token = todo.pop()
            name = token.text
            if token.kind != NAME or name in token.hidden:
                done.append(token)
            elif name in macros:
                self.call(macros[name], token, todo, done)
            elif name in _SPECIAL and name != "_Pragma":
                done.append(self.special(token))
            else:
                done.append(token)
        return done

    def special(self, token: Token) -> Token:
        if token.text == "__LINE__":
            return token._replace(kind=NUMBER, text=str(token.line))
        if token.text == "__FILE__":
            return token._replace(kind=STRING, text=f'"{token.file}"')
        self.counter += 1
        return token._replace(kind=NUMBER, text=str(self.counter - 1))

    def read(self, characters: int) -> None:
        """Allows the macros of so many characters more."""
        self.allowed += characters * TOKENS_PER_CHARACTER

    def call(self, macro: Macro, token: Token, todo: list[Token], done: list[Token]) -> None:
        hidden = token.hidden | {macro.name}
        if len(hidden) > CHAIN:
            raise fault(f"the macro {macro.name} comes out of more than {CHAIN} others, one in another's text", token)
        if macro.parameters is None:
            body = list(macro.body)
            if any(part.text == "##" for part in body):
                body = self.pasted(body, token)
        else:
            at = len(todo) - 1
            while at >= 0 and todo[at].kind in (SPACE, NEWLINE, LINE):
                if todo[at].kind == LINE:
                    todo[at:] = [*_opened(todo[at]), *todo[at + 1 :]]
                    at = len(todo)
                at -= 1
            if at < 0 or todo[at].text != "(":
                done.append(token)
                return
            del todo[at:]
            arguments = self.arguments(macro, token, todo)
            body = self.substituted(macro, arguments, token)
        self.made += len(body) + 1
        if self.made > self.allowed:
            reason = f"the macro {macro.name} makes more than {self.allowed} tokens: macros multiply one another"
            raise fault(reason, token)
        if not body:
            done.append(token._replace(kind=SPACE, text=" "))
        for kind, text, file, line, column, own in reversed(body):
            place = (file, line, column) if line else token[2:5]
            todo.append(Token(kind, text, *place, own | hidden if own else hidden))

    def arguments(self, macro: Macro, token: Token, todo: list[Token]) -> list[list[Token]]:
        """Takes a call's arguments, up to its closing parenthesis."""
        parameters = macro.parameters or ()
        found: list[list[Token]] = [[]]
        nesting = 0
        while todo:
            part = todo.pop()
            if part.kind == LINE:
                todo.extend(_opened(part))
                continue
            if part.text == ")" and nesting == 0:
                break
            nesting += (part.text == "(") - (part.text == ")")
            is_rest = macro.is_variadic and len(found) >= len(parameters)
            if part.text == "," and nesting == 0 and not is_rest:
                found.append([])
            else:
                found[-1].append(part._replace(kind=SPACE, text=" ") if part.kind == NEWLINE else part)
        else:
            raise fault(f"the call of the macro {macro.name} is never closed by ')'", token)
        found = [stripped(argument) for argument in found]
        if macro.is_variadic and len(found) == len(parameters) - 1:
            found.append([])
        if not parameters and found == [[]]:
            return []
        if len(found) != len(parameters):
            given = "1 argument is" if len(found) == 1 else f"{len(found)} arguments are"
            raise fault(f"{given} given to the macro {macro.name}, which takes {len(parameters)}", token)
        return found

    def substituted(self, macro: Macro, arguments: list[list[Token]], token: Token) -> list[Token]:
        """Returns the macro's text with its arguments in place, expanded unless they are pasted or made a string."""
        given = dict(zip(macro.parameters or (), arguments, strict=True))
        expanded: dict[str, list[Token]] = {}
        self.depth += 1
        if self.depth > DEPTH:
            raise fault(f"calls of macros are nested more than {DEPTH} deep", token)
        body: list[Token] = []
        at = 0
        texts = [part.text for part in macro.body if part.kind != SPACE]
        parts = [part for part in macro.body if part.kind != SPACE] if "##" in texts or "#" in texts else macro.body
        while at < len(parts):
            part = parts[at]
            after = parts[at + 1].text if at + 1 < len(parts) else ""
            if part.text == "#" and after in given:
                self.join(given[after], token)
                text = "".join(one.text for one in given[after]).replace("\\", "\\\\").replace('"', '\\"')
                body.append(part._replace(kind=STRING, text=f'"{text}"'))
                at += 2
                continue
            is_pasted = after == "##" or (at > 0 and parts[at - 1].text == "##")
            if part.kind != NAME or part.text not in given:
                body.append(part)
            elif is_pasted:
                # An empty argument leaves nothing to paste, but its ## must not reach beyond.
                body.extend(given[part.text] or [part._replace(kind=SPACE, text="")])
            else:
                if part.text not in expanded:
                    expanded[part.text] = self.expand(list(given[part.text]))
                body.extend(expanded[part.text])
            at += 1
        self.depth -= 1
        return self.pasted(body, token) if "##" in texts else body

    def pasted(self, body: list[Token], token: Token) -> list[Token]:
        """Returns the tokens with every ``a ## b`` made one."""
        made: list[Token] = []
        at = 0
        while at < len(body):
            part = body[at]
            if part.text == "##" and made and at + 1 < len(body):
                while made[-1].kind == SPACE and made[-1].text == " " and len(made) > 1:
                    made.pop()
                left, right = made.pop(), body[at + 1]
                self.join([left, right], token)
                joined = list(tokens_of(left.text + right.text, left.file)) or [left]
                made.extend(left._replace(kind=new.kind, text=new.text) for new in joined)
                at += 2
            else:
                made.append(part)
                at += 1
        return [part for part in made if part.text]

    def join(self, parts: list[Token], token: Token) -> None:
        """Counts the characters of what is about to be made one token."""
        self.joined += sum(len(part.text) for part in parts)
        if self.joined > CHARACTERS:
            raise fault(
                f"macros paste more than {CHARACTERS} characters together with # and ##: they multiply one another",
                token,
            )


def _opened(line: Token) -> list[Token]:
    """Returns the tokens of a whole line, the first last."""
    return list(tokens_of(line.text, line.file, line.line))[::-1]
