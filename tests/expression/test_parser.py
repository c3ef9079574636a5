"""Terms, precedence, and the messages of everything that is not in the language."""

from __future__ import annotations

import pytest

from perfmodel.basics.errors import ModelStringError
from perfmodel.expression import parse

# text, words of the message, line, column
REJECTED = {
    "empty": ("", "empty", 1, 1),
    "comments only": ("  # c\n\n", "empty", 3, 1),
    "no names": ("1 + 2*3", "neither a parameter (p_…) nor a feature (f_…)", 1, 1),
    "missing operand": ("p_x +", "expected a number, a name or '(', got end of the model string", 1, 6),
    "missing operator": ("p_x f_y", "expected an operator or the end of the line, got 'f_y'", 1, 5),
    "python": ("p_x if 1 else 2", "got 'if'", 1, 5),
    "attribute": ("p_x.real", "unexpected character '.'", 1, 4),
    "string": ("__import__('os')", 'unexpected character "\'"', 1, 12),
    "semicolon": ("p_x;p_y", "unexpected character ';'", 1, 4),
    "caret": ("p_x^2", "unexpected character '^': write ** for a power", 1, 4),
    "percent": ("p_x%2", "there is no remainder", 1, 4),
    "brace": ("p_x*{1}", "braces belong into feature names", 1, 5),
    "tuple": ("(p_x,p_y)", "expected an operator or ')', got ','", 1, 5),
    "open bracket": ("1 + (p_x", "this '(' is never closed", 1, 5),
    "open bracket on an earlier line": ("a = (p_x +\nb = 3\na", "'b' is defined inside an expression", 2, 1),
    "close bracket": ("p_x)", "expected an operator or the end of the line, got ')'", 1, 4),
    "called parameter": ("p_x(2)", "got '('", 1, 4),
    "called term": ("a = p_x\na(2)", "'a' is a term, not a function: write '*' to multiply", 2, 1),
    "unknown function": ("tahn(p_x)", "unknown function 'tahn'; did you mean 'tanh'?", 1, 1),
    "no such function": ("p_x*eval(2)", "unknown function 'eval'", 1, 5),
    "primitive": ("select(p_x, 1, 2, 3)", "unknown function 'select'", 1, 1),
    "function without arguments": ("2*tanh*p_x", "function 'tanh' needs arguments: tanh(x)", 1, 3),
    "no arguments": ("tanh()*p_x", "tanh takes 1 argument (x), got 0", 1, 1),
    "too many arguments": ("p_x + tanh(p_x, 2)", "tanh takes 1 argument (x), got 2", 1, 7),
    "too few arguments": ("smooth_max(p_x, 2)", "smooth_max takes 3 arguments (a, b, p), got 2", 1, 1),
    "one maximum": ("max(p_x)", "max takes at least 2 arguments (a, b, …), got 1", 1, 1),
    "one resource": ("overlap(f_a, p_x)", "overlap takes at least 3 arguments (a, b, …, p), got 2", 1, 1),
    "saturating": ("saturating(f_n, p_x)", "takes 7 arguments (n, a, b, c, a2, c2, n_sat), got 2", 1, 1),
    "prefix forgotten": ("p_madd*f_x + madd", "unknown name 'madd': a parameter starts with p_", 1, 14),
    "prefix suggested": ("p_madd*f_x + madd", "did you mean 'p_madd'?", 1, 14),
    "misspelt term": ("overhead = p_x\noverhaed + 1", "unknown name 'overhaed'", 2, 1),
    "misspelt term suggested": ("overhead = p_x\noverhaed + overhead", "did you mean 'overhead'", 2, 1),
    "term used before": ("a = b\nb = p_x\na + b", "unknown name 'b'", 1, 5),
    "own definition": ("a = p_x\n- a", "'a' is used in its own definition", 2, 3),
    "bare prefix": ("2*p_", "name 'p_' has nothing after its prefix", 1, 3),
    "bare feature prefix": ("f_:1", "name 'f_' has nothing after its prefix", 1, 1),
    "defined parameter": ("p_x = 3\np_x", "'p_x' cannot be defined: it is a parameter", 1, 1),
    "defined feature": ("f_x:1 = 3\nf_x:1", "'f_x:1' cannot be defined: it is a feature", 1, 1),
    "defined number": ("3 = p_x\np_x", "'3' cannot be defined: it is not a name", 1, 1),
    "defined function": ("tanh = p_x\ntanh", "'tanh' is a function: give the term another name", 1, 1),
    "defined twice": ("a = p_x\na = p_y\na", "term 'a' is already defined", 2, 1),
    "unused term": ("a = p_x\nb = a\np_y", "term 'b' is never used", 2, 1),
    "no last expression": ("a = p_x\nb = a\n", "the last line must be an expression without '='", 2, 1),
    "two expressions": ("p_x\np_y", "only the last line may be a bare expression", 1, 1),
    "trailing text in a definition": ("a = p_x p_y\na", "expected an operator or the end of the line, got 'p_y'", 1, 9),
    "number and name": ("2x*p_a", "number 2 runs into a name", 1, 2),
    "hexadecimal": ("p_x + 0x10", "number 0 runs into a name", 1, 8),
    "infinite number": ("p_x + 1e999", "number 1e999 is too large", 1, 7),
    "vanishing number": ("1e-999*p_x", "number 1e-999 is too small: it would become 0", 1, 1),
    "non-ASCII": ("p_x*\u00e9", "character U+00E9 is not allowed", 1, 5),
    "non-ASCII digit": ("p_x*\u0661", "character U+0661 is not allowed", 1, 5),
    "non-ASCII comment": ("p_x # \u2028", "character U+2028 is not allowed", 1, 7),
    "NUL": ("p_x\n*\x00", "character U+0000 is not allowed", 2, 2),
    "carriage return": ("p_x\r*2", "character U+000D is not allowed", 1, 4),
    "lone surrogate": ("p_x*\udc80", "character U+DC80 is not allowed", 1, 5),
    "open brace": ("p_x*f_x:{0:1", "this '{' is not closed on its line", 1, 9),
    "open brace on a line": ("(f_x:{0:1\n}*p_x)", "this '{' is not closed on its line", 1, 6),
    "nested braces": ("f_x:{a{b}}", "braces cannot be nested", 1, 7),
    "empty braces": ("f_x:{ }", "these braces are empty", 1, 5),
    "odd character in braces": ("f_x:{a(b)}", "unexpected character '(' inside braces", 1, 7),
    "no condition": ("p_x*f_x:", "a feature's ':' needs a condition right after it", 1, 9),
    "space before condition": ("f_x: 1", "needs a condition right after it", 1, 5),
    "double comparison": ("f_x:==1", "needs a condition right after it", 1, 5),
    "signed condition": ("f_x:-1", "a sign is allowed only inside braces", 1, 5),
    "signed exponent": ("f_x_ratio:<1e-3", "a sign is allowed only inside braces", 1, 14),
}


@pytest.mark.parametrize("case", REJECTED)
def test_errors_name_the_culprit_and_its_place(case: str) -> None:
    text, words, line, column = REJECTED[case]
    with pytest.raises(ModelStringError) as caught:
        parse(text)
    assert words in caught.value.reason
    assert (caught.value.line, caught.value.column) == (line, column)


def test_the_message_shows_the_line_with_a_caret() -> None:
    with pytest.raises(ModelStringError) as caught:
        parse("a = p_x\nb = 2*tahn(a)\nb")
    message, shown, caret = str(caught.value).split("\n")
    assert message.endswith("(line 2, column 7)")
    assert shown[caret.index("^") :].startswith("tahn(a)")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("p_x + 2*3", 11.0),
        ("p_x - 2 - 3", 0.0),
        ("p_x/2/5", 0.5),
        ("-p_x**2", -25.0),
        ("(-p_x)**2", 25.0),
        ("2**-1*p_x", 2.5),
        ("2**3**2*p_x", 2560.0),
        ("-2*-p_x", 10.0),
        ("- -p_x", 5.0),
        ("+p_x - +3", 2.0),
        ("2*(p_x + 1)", 12.0),
        ("p_x*2**2", 20.0),
        ("p_x\n- 1", 4.0),
    ],
)
def test_precedence_is_that_of_arithmetic(text: str, value: float) -> None:
    assert parse(text).compile()({"p_x": 5.0}, {}) == value


def test_non_text_is_refused() -> None:
    with pytest.raises(ModelStringError, match="a model string is text, not int"):
        parse(3)  # type: ignore[arg-type]
