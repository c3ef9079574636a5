"""The grammar of feature names: every documented form is read, every wrong one is told where and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import perfmodel as pm
from perfmodel.basics.errors import FeatureError, ModelStringError
from perfmodel.vocabulary.feature_name import Word, parse_axes, parse_condition, parse_name


def words(name: str) -> list[tuple[str, str | None]]:
    return [(word.key, word.condition) for word in parse_name(name).words]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("f_op_float32_madd", [("op", None), ("float32", None), ("madd", None)]),
        (
            "f_mem_access_global_float32_load_lstrides:{0:1;1:16}_ratio:<2",
            [
                *[(word, None) for word in ("mem", "access", "global", "float32", "load")],
                ("lstrides", "0:1;1:16"),
                ("ratio", "<2"),
            ],
        ),
        (
            "f_mem_access_tag:a_global_float32_load_lstrides:{0:0;1:>15}",
            [
                *[("mem", None), ("access", None), ("tag", "a")],
                *[(word, None) for word in ("global", "float32", "load")],
                ("lstrides", "0:0;1:>15"),
            ],
        ),
        ("f_mem_access_tag:{my_long_tag}_load", [*words("f_mem_access"), ("tag", "my_long_tag"), ("load", None)]),
        ("f_mem_access_afr:2..8", [*words("f_mem_access"), ("afr", "2..8")]),
        ("f_mem_access_afr:<=1.5", [*words("f_mem_access"), ("afr", "<=1.5")]),
        ("f_a_lstrides:{ 0 : 1 ; 1 : > 15 }", [("a", None), ("lstrides", " 0 : 1 ; 1 : > 15 ")]),
        ("f_a:{x}", [("a", "x")]),
    ],
)
def test_words_and_conditions_are_taken_apart(name: str, expected: list[tuple[str, str | None]]) -> None:
    assert words(name) == expected


def test_each_word_knows_where_it_stands() -> None:
    name = "f_mem_access_tag:{a_b}_afr:>1"
    assert [name[word.offset :].split("_")[0].split(":")[0] for word in parse_name(name).words] == [
        *("mem", "access", "tag", "afr")
    ]


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("16", [16], [15, 17, 16.5]),
        ("-2", [-2], [2]),
        ("+2", [2], [-2]),
        (".5", [0.5], [0.4]),
        ("1e3", [1000], [999]),
        ("<2", [1, 1.999, -5], [2, 3]),
        ("<=2", [2, 1], [2.001]),
        (">1", [1.001, 9], [1, 0]),
        (">=1", [1, 9], [0.999]),
        ("2..8", [2, 5.5, 8], [1.999, 8.001]),
        ("-4..-1", [-4, -1], [0, -5]),
        (" > 15 ", [16], [15]),
    ],
)
def test_conditions_hold_exactly_where_they_say(text: str, inside: list[float], outside: list[float]) -> None:
    condition = parse_condition(text, Word("afr", text, 0))
    assert condition.matches(inside).all()
    assert not condition.matches(outside).any()


@pytest.mark.parametrize(
    "text", ["", "x", "=2", "<", "1..", "..2", "1,5", "1e", "0x10", "nan", "inf", "٣", ">-", "<>2"]
)
def test_other_conditions_are_refused(text: str) -> None:
    with pytest.raises(FeatureError, match="of 'afr' is not understood; write a number") as caught:
        parse_condition(text, Word("afr", text, 7))
    assert caught.value.offset == 7


def test_axes_are_read_with_spaces_and_signs() -> None:
    axes = parse_axes(Word("lstrides", " 0 : -1 ; 2 : > 15 ", 0))
    assert {axis: condition.text for axis, condition in axes.items()} == {0: "-1", 2: ">15"}


@pytest.mark.parametrize("text", ["", "0", "0=1", "a:1", "²:1", "3:1", "-1:1", "0:1;", "0:1;0:1", "0:1,1:2", "00:1"])
def test_other_lists_of_axes_are_refused(text: str) -> None:
    with pytest.raises(FeatureError, match=r"lstrides:.* is not a list of axes; write for|is not understood; write"):
        parse_axes(Word("lstrides", text, 0))


WRONG = {
    # not in the grammar
    "": ("is not a feature's name; those start with 'f_'", 0),
    "op_float32": ("is not a feature's name; those start with 'f_'", 0),
    "f_": ("ends too early; a word is missing after '_'", 1),
    "f_op_": ("ends too early; a word is missing after '_'", 4),
    "f_op__madd": ("cannot be read at '_madd'; words are joined by '_'", 5),
    "f_op_float32 madd": ("cannot be read at 'float32 madd'", 5),
    "f_op_{x}": ("cannot be read at '{x}'", 5),
    "f_op_madd:": ("cannot be read at 'madd:'", 5),
    "f_mem_access_lstrides:{0:1": ("cannot be read at 'lstrides:{0:", 13),
    "f_mem_access_afr:{>1}x": ("cannot be read at 'afr:{>1}x'", 13),
    # no such family
    "f_opp_float32": ("no feature family knows 'f_opp_float32'.*did you mean", 0),
    "f_thread_group": ("did you mean 'f_thread_groups'", 0),
    "f_sync_barier_local": ("did you mean 'f_sync_barrier_local'", 0),
    "f_op:3_float32": ("no feature family knows", 0),
    # words that a family does not have
    "f_op_flaot32_madd": ("unknown word 'flaot32'; did you mean 'float32'", 5),
    "f_op_float32_maddd": ("unknown word 'maddd'; did you mean 'madd'", 13),
    "f_op_float32_fmax": ("calls of fmax count as max; write max", 13),
    "f_op_float32:3": ("the word 'float32' of feature 'f_op_float32:3' takes no condition", 5),
    "f_op_contract": ("the word 'contract' of feature 'f_op_contract' needs a condition", 5),
    "f_op_contract:maybe": ("contract:maybe is neither contract:on nor contract:off", 5),
    "f_op_float32_contract:off_madd": ("asks for multiply-adds and, with contract:off, for none", 13),
    "f_mem_access_gloabl": ("unknown word 'gloabl'; did you mean 'global'", 13),
    "f_mem_access_lstrides": ("the word 'lstrides' of .* needs a condition", 13),
    "f_mem_access_tag:{}": ("the word 'tag' of .* needs a condition", 13),
    "f_mem_access_tag:{ }": ("the word 'tag' of .* needs a condition", 13),
    "f_mem_access_load:3": ("the word 'load' of .* takes no condition", 13),
    "f_mem_access_lstride:{0:1}": ("unknown word 'lstride'; did you mean 'lstrides'", 13),
    "f_mem_access_lstrides:3": ("is not a list of axes; write for example lstrides:{0:1;1:>15}", 13),
    "f_mem_access_load_afr:x": ("condition 'x' of 'afr' is not understood; write a number", 18),
    "f_mem_access_load_afr:3..2": ("selects nothing, as 3 is above 2; swap them", 18),
    "f_thread_groups_x": ("unknown word 'x'", 16),
    "f_cl_wall_time_a:3": ("unknown word 'a'", 15),
    # given twice
    "f_op_float32_float64": ("gives its dtype twice; leave one out", 13),
    "f_op_add_mul": ("gives its kind twice; leave one out", 9),
    "f_op_contract:on_contract:off": ("gives its contract twice", 17),
    "f_mem_access_load_store": ("gives its direction twice", 18),
    "f_mem_access_local_global": ("gives its space twice", 19),
    "f_mem_access_afr:1_ratio:2": ("gives its ratio twice", 19),
    "f_mem_access_tag:a_tag:b": ("gives its tag twice", 19),
}


@pytest.mark.parametrize(("name", "words", "offset"), [(n, w, o) for n, (w, o) in WRONG.items()])
def test_wrong_names_are_told_what_is_wrong_and_where(name: str, words: str, offset: int) -> None:
    with pytest.raises(FeatureError, match=words.replace("{", r"\{").replace("(", r"\(")) as caught:
        pm.feature(name)
    assert caught.value.offset == offset
    assert "\n" not in str(caught.value)


def test_a_model_string_shows_the_wrong_word_of_a_name() -> None:
    with pytest.raises(ModelStringError) as caught:
        pm.Model("f_cl_wall_time", "p_a * f_op_float32_add\n + p_b * f_op_flaot32_madd")
    assert (caught.value.line, caught.value.column) == (2, 15)


@given(st.text() | st.text("f_:{};<>=.0123456789abc \n", max_size=40).map(lambda text: f"f_{text}"))
def test_any_string_is_a_name_or_a_feature_error(text: str) -> None:
    offset = 0
    try:
        parse_name(text)
    except FeatureError as error:
        offset = error.offset
    assert 0 <= offset <= len(text)


tails = st.lists(
    st.sampled_from(["global", "float32", "load", "store", "lstrides", "afr", "tag", "var", "x", "madd", "contract"])
    .flatmap(lambda key: st.tuples(st.just(key), st.none() | st.text("0123:;<>=.{}- offab²", max_size=8)))
    .map(lambda word: word[0] if word[1] is None else f"{word[0]}:{word[1]}"),
    max_size=5,
)


@given(st.sampled_from(["f_mem_access", "f_op", "f_thread_groups", "f_cl_wall_time"]), tails)
def test_any_name_is_a_feature_or_a_feature_error(prefix: str, tail: list[str]) -> None:
    try:
        found = pm.feature("_".join([prefix, *tail]))
    except FeatureError:
        return
    assert callable(found.eval)
