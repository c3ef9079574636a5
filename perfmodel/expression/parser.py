"""Parses tokens into shared nodes: recursive descent over lines and operands, precedence climbing over operators."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perfmodel.basics.errors import ModelStringError, nearest
from perfmodel.expression.functions import LANGUAGE
from perfmodel.expression.limits import MAX_NESTING, Ledger
from perfmodel.expression.tokens import Kind, Token, tokenize
from perfmodel.expression.tree import Binary, Call, FeatureName, Negation, Node, Number, Parameter, walk

# How strongly an operator binds its left operand; the right one of a left-associative operator binds one more.
_BINDING = {"+": 10, "-": 10, "*": 20, "/": 20, "**": 40}
_UNARY_BINDING = 30
_RIGHT_BINDING = {"+": 11, "-": 11, "*": 21, "/": 21, "**": _UNARY_BINDING}


@dataclass(frozen=True)
class ParsedModel:
    """A model string's tree, its terms in order of definition, and where each parameter and feature first stands."""

    value: Node
    terms: dict[str, Node]
    parameters: dict[str, int]
    features: dict[str, int]


def parse_model(source: str, known: Mapping[str, Node] | None = None) -> ParsedModel:
    """Parses and checks a model string.

    Args:
        known: terms that it may name beside those that it defines.

    Raises:
        ModelStringError: the string is not in the language or exceeds one of its limits.
    """
    return _Parser(source, known or {}).model()


class _Parser:
    def __init__(self, source: str, known: Mapping[str, Node]) -> None:
        self.known = known
        self.source = source
        self.tokens = tokenize(source)
        self.index = 0
        self.nesting = 0
        self.defining: str | None = None
        self.ledger = Ledger(source)
        self.terms: dict[str, Node] = {}
        self.unused: dict[str, int] = {}
        self.parameters: dict[str, int] = {}
        self.features: dict[str, int] = {}

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def advance(self) -> Token:
        token = self.token
        self.index += 1
        return token

    def at(self, symbol: str, ahead: int = 0) -> bool:
        token = self.tokens[min(self.index + ahead, len(self.tokens) - 1)]
        return token.kind is Kind.SYMBOL and token.text == symbol

    def fail(self, message: str, token: Token) -> ModelStringError:
        return ModelStringError(message, self.source, token.start)

    # Lines

    def model(self) -> ParsedModel:
        if len(self.tokens) == 1:
            raise self.fail("the model string is empty: write an expression such as 'p_a * f_x'", self.tokens[0])
        while self.at("=", ahead=1):
            self.definition()
        start = self.token
        value = self.expression()
        self.end(start)
        if self.unused:
            name, position = next(iter(self.unused.items()))
            raise ModelStringError(f"term '{name}' is never used: use it or remove its line", self.source, position)
        self.ledger.check({node: name for name, node in self.terms.items()})
        if not (self.parameters or self.features):
            raise self.fail("the model has neither a parameter (p_…) nor a feature (f_…)", start)
        return ParsedModel(value, self.terms, self.parameters, self.features)

    def definition(self) -> None:
        name = self.advance()
        if name.kind is not Kind.NAME:
            what = f"a {name.kind.value}" if name.kind in (Kind.PARAMETER, Kind.FEATURE) else "not a name"
            raise self.fail(f"{name.describe()} cannot be defined: it is {what}, and '=' defines terms only", name)
        if name.text in LANGUAGE:
            raise self.fail(f"{name.text!r} is a function: give the term another name", name)
        if name.text in self.terms:
            raise self.fail(f"term {name.text!r} is already defined: give each term its own name", name)
        self.advance()
        self.defining = name.text
        node = self.expression()
        self.defining = None
        if self.token.kind is Kind.END:
            raise self.fail("the last line must be an expression without '=': it is the model's value", name)
        if self.token.kind is not Kind.NEWLINE:
            raise self.fail(f"expected an operator or the end of the line, got {self.token.describe()}", self.token)
        self.advance()
        if node in self.terms.values():  # one name a node, so that a node tells its term
            node = self.ledger.enter(dataclasses.replace(node), name.start)
        self.terms[name.text] = node
        self.unused[name.text] = name.start

    def end(self, start: Token) -> None:
        if self.token.kind is Kind.NEWLINE:
            raise self.fail("only the last line may be a bare expression: define a term here, 'name = …'", start)
        if self.token.kind is not Kind.END:
            raise self.fail(f"expected an operator or the end of the line, got {self.token.describe()}", self.token)

    # Expressions

    def expression(self, binding: int = 0) -> Node:
        left = self.operand()
        while self.token.kind is Kind.SYMBOL and _BINDING.get(self.token.text, -1) >= binding:
            operator = self.advance()
            right_binding = _RIGHT_BINDING[operator.text]
            towers = operator.text == "**"  # the one operator whose right operand can go on for ever
            right = self.deeper(operator, right_binding) if towers else self.expression(right_binding)
            left = self.ledger.enter(Binary(operator.text, left, right), operator.start)
        return left

    def deeper(self, opening: Token, binding: int = 0) -> Node:
        """Parses an expression that is one level further in; levels are bounded, as each takes Python's stack too."""
        if self.nesting == MAX_NESTING:
            raise self.fail(f"nested more than {MAX_NESTING} levels deep: define terms for the inner parts", opening)
        self.nesting += 1
        node = self.expression(binding)
        self.nesting -= 1
        return node

    def operand(self) -> Node:
        token = self.advance()
        if token.kind is Kind.NUMBER:
            return self.ledger.enter(Number(float(token.text)), token.start)
        if token.kind is Kind.PARAMETER:
            self.parameters.setdefault(token.text, token.start)
            return self.ledger.enter(Parameter(token.text), token.start)
        if token.kind is Kind.FEATURE:
            self.features.setdefault(token.text, token.start)
            return self.ledger.enter(FeatureName(token.text), token.start)
        if token.kind is Kind.NAME:
            return self.call(token) if self.at("(") else self.term(token)
        if token.text == "(":
            node = self.deeper(token)
            self.close(token)
            return node
        if token.text == "-":
            return self.ledger.enter(Negation(self.deeper(token, _UNARY_BINDING)), token.start)
        if token.text == "+":
            return self.deeper(token, _UNARY_BINDING)
        raise self.fail(f"expected a number, a name or '(', got {token.describe()}", token)

    def close(self, opening: Token) -> None:
        if self.token.kind is Kind.END:
            raise self.fail("this '(' is never closed", opening)
        if not self.at(")"):
            raise self.fail(f"expected an operator or ')', got {self.token.describe()}", self.token)
        self.advance()

    def call(self, name: Token) -> Node:
        function = LANGUAGE.get(name.text)
        if function is None:
            if name.text in self.terms:
                raise self.fail(f"{name.text!r} is a term, not a function: write '*' to multiply", name)
            raise self.fail(f"unknown function {name.text!r}{_suggest(name.text, LANGUAGE)}", name)
        opening = self.advance()
        arguments = [] if self.at(")") else [self.deeper(opening)]
        while self.at(","):
            arguments.append(self.deeper(self.advance()))
        self.close(opening)
        least, more = function.arity
        if len(arguments) < least or (len(arguments) > least and not more):
            takes = f"{'at least ' if more else ''}{least} argument{'s' if least > 1 else ''}"
            raise self.fail(f"{name.text} takes {takes} ({function.signature}), got {len(arguments)}", name)
        return self.ledger.enter(Call(name.text, tuple(arguments)), name.start)

    def term(self, name: Token) -> Node:
        if self.at("="):
            raise self.fail(f"{name.text!r} is defined inside an expression: finish the line or bracket above", name)
        if name.text in self.terms:
            self.unused.pop(name.text, None)
            return self.terms[name.text]
        if name.text in self.known:
            return self.taken(self.known[name.text], name)
        if name.text in LANGUAGE:
            raise self.fail(
                f"function {name.text!r} needs arguments: {name.text}({LANGUAGE[name.text].signature})", name
            )
        if name.text == self.defining:
            raise self.fail(
                f"term {name.text!r} is used in its own definition (a line that begins with an operator continues "
                f"the line above)",
                name,
            )
        known = [token.text for token in self.tokens if token.kind in (Kind.PARAMETER, Kind.FEATURE)]
        raise self.fail(
            f"unknown name {name.text!r}: a parameter starts with p_, a feature with f_, and a term is defined on a "
            f"line above{_suggest(name.text, [*self.terms, *self.known, *LANGUAGE, *known])}",
            name,
        )

    def taken(self, term: Node, name: Token) -> Node:
        """Takes a known term over, with all that it is made of."""
        for node in walk(term):
            if node not in self.ledger.facts:
                self.ledger.enter(node, name.start)
            if isinstance(node, Parameter):
                self.parameters.setdefault(node.name, name.start)
            elif isinstance(node, FeatureName):
                self.features.setdefault(node.name, name.start)
        return term


def _suggest(name: str, known: Iterable[str]) -> str:
    """Returns the nearest known names, looked for only where that is quick."""
    return nearest(name, [other for other in known if len(other) <= 60][:200]) if len(name) <= 60 else ""
