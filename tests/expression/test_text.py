"""Expressions written as model strings and as LaTeX."""

from __future__ import annotations

import pytest

from perfmodel.expression import parse, to_text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("p_a*f_x+p_b", "p_a*f_x + p_b"),
        ("p_a-(p_b-p_c)", "p_a - (p_b - p_c)"),
        ("(p_a-p_b)-p_c", "p_a - p_b - p_c"),
        ("p_a*(p_b*p_c)", "p_a*(p_b*p_c)"),
        ("p_a/(p_b/p_c)", "p_a/(p_b/p_c)"),
        ("(-p_a)**2", "(-p_a)**2"),
        ("-p_a**2", "-p_a**2"),
        ("p_a**-(p_b)", "p_a**-p_b"),
        ("(p_a**2)**3", "(p_a**2)**3"),
        ("p_a**2**3", "p_a**2**3"),
        ("--p_a", "--p_a"),
        ("-(p_a*p_b)", "-(p_a*p_b)"),
        ("max( p_a , f_x:{0: 1} )", "max(p_a, f_x:{0:1})"),
        ("1e300*p_a*.5*2.0", "1e+300*p_a*0.5*2"),
    ],
)
def test_text_has_only_the_brackets_it_needs(text: str, written: str) -> None:
    assert to_text(parse(text).value) == written
    assert to_text(parse(written).value) == written


def test_shared_parts_become_terms() -> None:
    model = parse("a = p_x*f_y\nb = a + a\n(-b*exp(b))")
    assert to_text(model.value) == "t1 = p_x*f_y\nt2 = t1 + t1\n(-t2*exp(t2))"
    assert to_text(model.value, {model.terms["b"]: "b"}) == "-b*exp(b)"


@pytest.mark.parametrize(
    "text",
    [
        "t = p_x\n" + "".join(f"t{i} = tanh({'t' if i == 0 else f't{i - 1}'}) - 1\n" for i in range(300)) + "t299",
        "*".join(f"(p_{i} - {i})" for i in range(600)),
        "p_a" + " - p_a" * 1_200,
        "a = p_x - 1\n" + "max(a, " * 60 + "a" + ")" * 60,
    ],
)
def test_long_and_deep_expressions_are_read_back(text: str) -> None:
    model = parse(text)
    again = parse(to_text(model.value))
    parameters = {name: 0.5 + index for index, name in enumerate(model.parameters)}
    assert again.compile()(parameters, {}) == model.compile()(parameters, {})


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("p_a*f_x", r"p_{\mathrm{a}} \cdot f_{\mathrm{x}}"),
        ("p_a/(f_x - 1)", r"\frac{p_{\mathrm{a}}}{f_{\mathrm{x}} - 1}"),
        ("(p_a + 1)**(p_b - 2)", r"{\left(p_{\mathrm{a}} + 1\right)}^{p_{\mathrm{b}} - 2}"),
        ("p_a - (p_b - 1)", r"p_{\mathrm{a}} - \left(p_{\mathrm{b}} - 1\right)"),
        ("2*-p_a", r"2 \cdot \left(-p_{\mathrm{a}}\right)"),
        ("p_a - -p_b", r"p_{\mathrm{a}} - \left(-p_{\mathrm{b}}\right)"),
        ("-(p_a + 1)", r"-\left(p_{\mathrm{a}} + 1\right)"),
        ("1.5e-9*p_a", r"1.5 \times 10^{-9} \cdot p_{\mathrm{a}}"),
        ("p_a*1e300", r"p_{\mathrm{a}} \cdot 10^{300}"),
        ("sqrt(abs(p_a))", r"\sqrt{\left|p_{\mathrm{a}}\right|}"),
        ("floor(p_a)", r"\left\lfloor p_{\mathrm{a}}\right\rfloor "),
        ("smooth_step(p_a, 2)", r"\operatorname{smooth\_step}\left(p_{\mathrm{a}}, 2\right)"),
        ("f_op_x:{0:>1}", r"f_{\mathrm{op\_x{:}\{0{:}{>}1\}}}"),
    ],
)
def test_latex(text: str, latex: str) -> None:
    assert parse(text).latex() == latex


def test_latex_shows_terms_as_aligned_lines_without_expanding_them() -> None:
    model = parse("my_work = p_a*f_x\nb = my_work + 1\nb - my_work*b")
    assert model.latex() == "\n".join(
        [
            r"\begin{aligned}",
            r"\mathrm{my\_work} &= p_{\mathrm{a}} \cdot f_{\mathrm{x}} \\",
            r"\mathrm{b} &= \mathrm{my\_work} + 1 \\",
            r"& \mathrm{b} - \mathrm{my\_work} \cdot \mathrm{b}",
            r"\end{aligned}",
        ]
    )


def test_latex_is_understood_by_matplotlib() -> None:
    from matplotlib.mathtext import MathTextParser

    text = "overlap(p_a*f_x:{0:>1;1:a-b*c/d,e=f}_y, -p_b**2/3, p_p) + sqrt(ceil(f_z:1..4)) - 1e-9*max(p_a, 2)"
    width = MathTextParser("path").parse(f"${parse(text).latex()}$").width
    assert width > 0
