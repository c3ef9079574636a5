"""Feature names with conditions, numbers, comments and line ends."""

from __future__ import annotations

import pytest

from perfmodel.expression import parse

WHOLE_NAMES = [
    "f_x",
    "f_9",
    "f_mem_access_global_float32_load_lstrides:{0:1;1:16}_ratio:<2",
    "f_mem_access_tag:a_global_float32_load_lstrides:{0:0;1:>15}",
    "f_x_afr:>=1.5_tail",
    "f_x_ratio:1..4",
    "f_x_gstrides:{0:16}_afr:>=1.5..",
    "f_x_size:<=1e3_granularity:subgroup",
    "f_x_lstrides:{0:-1;1:<+2*n/3,m=4}",
    "f_x:{a}:{b}",
]


@pytest.mark.parametrize("name", WHOLE_NAMES)
def test_a_feature_name_is_one_token(name: str) -> None:
    model = parse(f"p_a*{name}")
    assert model.features == (name,)
    assert model.positions == {"p_a": 0, name: 4}


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ("p_a*f_x_afr:>1*2", ("f_x_afr:>1",)),
        ("(f_a_ratio:<2)*p_a", ("f_a_ratio:<2",)),
        ("f_a:<2+f_a:>2-f_a", ("f_a:<2", "f_a:>2", "f_a")),
        ("f_a:2/f_b:{0:1}/f_c", ("f_a:2", "f_b:{0:1}", "f_c")),
        ("max(f_a:2,f_b:{0:1},f_c:4)", ("f_a:2", "f_b:{0:1}", "f_c:4")),
        ("f_a:1e - 3", ("f_a:1e",)),
        ("f_a:tag - 3", ("f_a:tag",)),
    ],
)
def test_a_feature_name_ends_at_an_operator(text: str, features: tuple[str, ...]) -> None:
    assert parse(text).features == features


def test_spaces_in_braces_are_dropped_from_the_canonical_name() -> None:
    model = parse("p_a*f_x:{0: 1 ; 1:>15}_y + p_b*f_x:{0:1;1:>15}_y")
    assert model.features == ("f_x:{0:1;1:>15}_y",)
    assert model.positions["f_x:{0:1;1:>15}_y"] == 4


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1.0), ("1.", 1.0), (".5", 0.5), ("1.5e3", 1500.0), ("2E-2", 0.02), ("1e+2", 100.0), ("007", 7.0)],
)
def test_numbers(text: str, value: float) -> None:
    assert parse(f"{text}*p_a").compile()({"p_a": 1.0}, {}) == value


@pytest.mark.parametrize(
    "text",
    [
        "work = p_a*f_x\n + p_b*f_y\nwork",
        "work = p_a*f_x +\n\n  # why\n p_b*f_y\nwork",
        "work =\n p_a*f_x + p_b*f_y\nwork",
        "\n# head\nwork = (p_a*f_x\n\n + p_b*f_y)   # tail\n\n\nwork\n# end\n\n",
        "work = p_a*f_x + p_b*f_y\r\n\twork\r\n",
        "work = max(p_a*f_x + p_b*f_y,\n 0)\nwork",
        "p_a*f_x\n+ p_b*f_y",
    ],
)
def test_line_ends_inside_a_statement_are_ignored(text: str) -> None:
    assert parse(text).compile()({"p_a": 2.0, "p_b": 3.0}, {"f_x": 5.0, "f_y": 7.0}) == 31.0
