"""Counts evaluated block by block equal exact arithmetic, whatever the block; counts survive being stored."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import perfmodel as pm
from perfmodel.counting import evaluation
from perfmodel.counting.counts import (
    AccessCount,
    BranchCount,
    ChainCount,
    Executions,
    Footprint,
    KernelCounts,
    OperationCount,
)
from perfmodel.counting.evaluation import Block, blockwise
from perfmodel.counting.quasipolynomial import Affine, Constraint, Piece, QuasiPolynomial, Term, holds
from perfmodel.counting.serialization import from_data, to_data
from perfmodel.generators.matmul import SquareMatmul
from perfmodel.vocabulary import named_features as vocabulary
from tests.counting_kernels import make
from tests.covering import EXAMPLES, examples

drawn = settings(
    max_examples=examples(50),
    derandomize=not EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
NAMES = ("k", "m", "n")


# --- drawn counts, sizes, and their values in Python's integers

small = st.integers(-50, 50)
positive = st.integers(1, 20)


def products(values: st.SearchStrategy[int]) -> st.SearchStrategy[tuple[tuple[str, int], ...]]:
    return st.dictionaries(st.sampled_from(NAMES), values, max_size=2).map(lambda found: tuple(found.items()))


flat_affines = st.builds(Affine, small, products(small), st.just(()), positive)
affines = st.builds(
    Affine, small, products(small), st.lists(st.tuples(flat_affines, small), max_size=1).map(tuple), positive
)
exponents = st.integers(1, 3)
coefficients = small | st.integers(-(2**70), 2**70)
terms = st.builds(
    Term, coefficients, products(exponents), st.lists(st.tuples(affines, exponents), max_size=2).map(tuple)
)


@st.composite
def polynomials(draw: st.DrawFn) -> tuple[tuple[Term, ...], int]:
    """Draws polynomials that are whole-valued, or have fractions as statistics give them, perhaps with two terms that
    cancel."""
    denominator = draw(positive | st.just(10**6) | st.just(2**65))
    factor = draw(st.sampled_from([denominator, 1]))
    found = [replace(term, coefficient=term.coefficient * factor) for term in draw(st.lists(terms, max_size=3))]
    cancels = draw(st.booleans())
    if found and cancels:
        big = draw(st.integers(2**40, 2**80)) * denominator
        first = found[0]
        found += [replace(first, coefficient=big), replace(first, coefficient=-big)]
    return tuple(found), denominator


@st.composite
def counts_of(draw: st.DrawFn) -> QuasiPolynomial:
    """Draws counts that hold everywhere, or in pieces on the two sides of an edge."""
    if draw(st.booleans()):
        return QuasiPolynomial((Piece(((),), *draw(polynomials())),), "everywhere")
    edge = draw(affines)
    beyond = replace(
        edge,
        constant=-edge.constant - 1,
        sizes=tuple((name, -c) for name, c in edge.sizes),
        floors=tuple((inner, -c) for inner, c in edge.floors),
    )
    extra = draw(st.lists(st.builds(Constraint, affines, st.booleans()), max_size=1))
    pieces = [
        Piece((((Constraint(edge, False)), *extra),), *draw(polynomials())),
        Piece(((Constraint(beyond, False),),), *draw(polynomials())),
    ]
    return QuasiPolynomial(tuple(pieces[: draw(st.integers(0, 2))]), "pieces")


values = st.integers(-40, 40) | st.integers(-(2**31), 2**31) | st.integers(-(2**40), 2**40)


@st.composite
def sizes_of(draw: st.DrawFn) -> dict[str, Any]:
    """Draws arrays that broadcast against each other: scalars, one or two dimensions, empty ones."""
    shapes = draw(
        st.sampled_from(
            [
                ((), (), ()),
                ((7,), (7,), (7,)),
                ((5,), (), (1,)),
                ((4, 1), (1, 3), (3,)),
                ((2, 3), (), (2, 1)),
                ((0,), (1,), ()),
                ((0, 3), (3,), ()),
            ]
        )
    )
    return {
        name: np.array(
            draw(st.lists(values, min_size=(count := int(np.prod(shape))), max_size=count)), dtype=np.int64
        ).reshape(shape)
        for name, shape in zip(NAMES, shapes, strict=True)
    }


def numerator(affine: Affine, at: dict[str, int]) -> int:
    inner = sum(c * (numerator(a, at) // a.denominator) for a, c in affine.floors)
    return affine.constant + sum(c * at[name] for name, c in affine.sizes) + inner


def truth(count: QuasiPolynomial, at: dict[str, int]) -> Fraction:
    total = Fraction(0)
    for piece in count.pieces:
        if not any(
            all(numerator(c.affine, at) == 0 if c.is_equality else numerator(c.affine, at) >= 0 for c in conjunction)
            for conjunction in piece.domain
        ):
            continue
        for term in piece.terms:
            product = Fraction(term.coefficient, piece.denominator)
            for name, exponent in term.sizes:
                product *= at[name] ** exponent
            for affine, exponent in term.floors:
                product *= (numerator(affine, at) // affine.denominator) ** exponent
            total += product
    return total


def points(sizes: dict[str, Any]) -> Iterator[dict[str, int]]:
    arrays = np.broadcast_arrays(*sizes.values())
    for at in zip(*(array.ravel().tolist() for array in arrays), strict=True):
        yield dict(zip(sizes, at, strict=True))


# --- evaluation


@drawn
@given(counts_of(), sizes_of())
def test_a_count_is_exact_where_float64_can_hold_it(count: QuasiPolynomial, sizes: dict[str, Any]) -> None:
    found = count(sizes)
    assert found.shape == np.broadcast_shapes(*(a.shape for a in sizes.values()))
    assert found.dtype == np.float64
    for value, at in zip(found.ravel().tolist(), points(sizes), strict=True):
        exact = truth(count, at)
        if exact.denominator == 1 and abs(exact) < 2**52:
            assert value == exact
        else:
            assert abs(Fraction(value) - exact) <= abs(exact) / 2 ** (50 if abs(exact) < 2**52 else 40)


@drawn
@given(st.lists(counts_of(), min_size=1, max_size=3), sizes_of(), st.integers(1, 6))
def test_blocks_change_no_bit(
    monkeypatch: pytest.MonkeyPatch, counts: list[QuasiPolynomial], sizes: dict[str, Any], length: int
) -> None:
    functions = [count.value for count in counts]
    shape = np.broadcast_shapes(*(a.shape for a in sizes.values()))
    whole = Block(sizes)
    expected = [np.array(np.broadcast_to(f(whole), shape), dtype=np.float64) for f in functions]
    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "BLOCK", length)
        together = blockwise(functions, sizes)
        alone = [count(sizes) for count in counts]
    for want, *found in zip(expected, together, alone, strict=True):
        for one in found:
            assert one.shape == shape
            assert one.tobytes() == want.tobytes()


@drawn
@given(counts_of(), sizes_of())
def test_a_size_by_itself_gives_the_bits_that_it_gives_in_an_array(
    count: QuasiPolynomial, sizes: dict[str, Any]
) -> None:
    singly = [float(count(at)) for at in points(sizes)]
    assert np.array(singly).tobytes() == count(sizes).tobytes()


@drawn
@given(st.lists(st.lists(st.builds(Constraint, affines, st.booleans()), max_size=2).map(tuple), max_size=2), sizes_of())
def test_domains_hold_as_integer_arithmetic_says(domain: list[tuple[Constraint, ...]], sizes: dict[str, Any]) -> None:
    shape = np.broadcast_shapes(*(a.shape for a in sizes.values()))
    one = QuasiPolynomial((Piece(tuple(domain), (Term(1, (), ()),), 1),), "")
    inside = np.broadcast_to(holds(tuple(domain), sizes), shape)
    assert inside.ravel().tolist() == [truth(one, at) == 1 for at in points(sizes)]


def test_a_count_of_a_million_sizes_is_that_of_each() -> None:
    product = make("{[i, j]: 0 <= i < n and 0 <= j <= i}", "o[i, j] = 2*a[i, j]", {"a, o": "n, n"})
    count = pm.Kernel(product).counts.operations[0].executions.workitem
    n = np.arange(1_000_000)
    assert np.array_equal(count({"n": n}), n * (n + 1) / 2)
    rows = count({"n": n.reshape(1000, 1000)[:, :1], "m": np.zeros((1, 500))})
    assert rows.shape == (1000, 500)
    assert np.array_equal(rows[:, 499], (n[::1000] * (n[::1000] + 1)) // 2)


def test_between_float64_and_int64_counts_stay_exact() -> None:
    halves = QuasiPolynomial((Piece(((),), (Term(1, (("n", 2),), ()), Term(1, (("n", 1),), ())), 2),), "")
    n = np.array([94_906_265, 94_906_266, 94_906_267, 134_217_726, 134_217_727])
    assert [int(v) for v in halves({"n": n})] == [k * (k + 1) // 2 for k in n.tolist()]


def test_a_fraction_of_many_stays_a_fraction() -> None:
    """A tenth of n² - (n² - n): the squares are beyond float64, and the count is no whole number."""
    big = 10**18
    parts = (Term(big, (("n", 2),), ()), Term(-big, (("n", 2),), ()), Term(1, (("n", 1),), ()))
    tenth = QuasiPolynomial((Piece(((),), parts, 10),), "")
    assert tenth({"n": np.array([5, 1234, 99_999])}).tolist() == [0.5, 123.4, 9999.9]


def test_what_a_block_has_computed_is_computed_once_and_cannot_be_changed() -> None:
    asked = []

    class Watched(QuasiPolynomial):
        @evaluation.once_per_block
        def value(self, block: Block) -> Any:
            asked.append(len(block["n"]))
            return super().value(block)

    count = Watched((Piece(((),), (Term(2, (("n", 1),), ()),), 1),), "2 n")
    block = Block({"n": np.arange(4)})
    first = count(block)
    assert count(block) is first
    assert asked == [4]
    assert count(Block({"n": np.arange(3)})).tolist() == [0, 2, 4]
    with pytest.raises(ValueError, match="read-only"):
        first += 1


def test_values_belong_to_who_asked() -> None:
    count = QuasiPolynomial((Piece(((),), (Term(1, (("n", 1),), ()),), 1),), "n")
    n = np.arange(3)
    one, other = blockwise([count.value, count.value], {"n": n})
    one += 5
    assert other.tolist() == [0, 1, 2]
    assert n.tolist() == [0, 1, 2]


MODEL = (
    *("f_op_float32_madd", "f_op_float32", "f_sync_barrier_local", "f_sync_kernel_launch", "f_thread_groups"),
    *("f_mem_access_global_float32_load_lstrides:{0:1}", "f_mem_access_global_float32_load_afr:>1"),
    *("f_mem_access_local_float32", "f_mem_access_global_float32_store_lstrides:{0:1;1:>15}_gstrides:{0:16}"),
)


@pytest.fixture(scope="module")
def matmul() -> pm.Kernel:
    variant = {"dtype": "float32", "tiled_prefetch": "True", "lsize_0": "16", "lsize_1": "16", "groups_fit": "False"}
    return pm.Kernel(SquareMatmul().program(variant))


def test_features_together_are_the_features_one_by_one(matmul: pm.Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "BLOCK", 7)
    features = {name: pm.feature(name) for name in MODEL}
    n = np.arange(1, 81).reshape(8, 10)
    found = vocabulary.evaluate_all(features, matmul, matmul.bind({"n": n}))
    assert list(found) == list(MODEL)
    for name, feature in features.items():
        assert found[name].shape == n.shape
        assert found[name].ravel().tolist() == [feature.eval(matmul.at(n=int(k))) for k in n.ravel()]
    assert found["f_op_float32_madd"].tolist() == (n**3).tolist()


def test_features_of_no_sizes_at_all(matmul: pm.Kernel) -> None:
    found = vocabulary.evaluate_all({"x": pm.feature("f_op_float32")}, matmul, matmul.bind({"n": []}))
    assert found["x"].shape == (0,)
    assert vocabulary.evaluate_all({}, matmul, matmul.bind({"n": 3})) == {}


# --- serialization


executions = st.builds(
    Executions,
    counts_of(),
    st.none() | counts_of(),
    counts_of(),
    st.lists(counts_of(), min_size=1, max_size=2).map(tuple),
)
strides = st.none() | counts_of()


@st.composite
def kernel_counts(draw: st.DrawFn) -> KernelCounts:
    shared = draw(executions)
    words = st.text(max_size=5)
    operations = st.lists(st.tuples(words, words, small), max_size=2).map(tuple)
    chains = st.builds(ChainCount, operations, st.just(shared), st.lists(words, max_size=2).map(tuple))
    access = st.builds(
        AccessCount,
        *(words, words, st.frozensets(words, max_size=2), words, st.integers(), words),
        *(st.dictionaries(small, strides, max_size=2), st.dictionaries(small, strides, max_size=1)),
        *(st.dictionaries(words, strides, max_size=1), st.just(shared) | executions),
        *(st.lists(words, max_size=2).map(tuple), st.just(shared) | executions, strides, words, words, words),
        st.none() | st.lists(st.lists(small, max_size=2).map(tuple), max_size=2).map(tuple),
        st.none() | small,
        st.none() | st.floats(0, 1),
    )
    counted = st.lists(st.builds(OperationCount, words, words, small, st.just(shared)), max_size=2).map(tuple)
    branch = st.builds(BranchCount, words, words, st.just(shared), st.none() | executions, words, strides)
    return KernelCounts(
        operations=draw(counted),
        chains=tuple(draw(st.lists(chains, max_size=2))),
        accesses=tuple(draw(st.lists(access, max_size=2))),
        footprints=tuple(draw(st.lists(st.builds(Footprint, *[words] * 4, *[strides] * 4), max_size=1))),
        branches=tuple(draw(st.lists(branch, max_size=2))),
        barriers=shared,
        launches=shared.workitem,
        work_groups=shared.workgroup,
        work_items=draw(counts_of()),
        local_size=(draw(counts_of()),),
        subgroup_size=draw(small),
        exact=draw(st.booleans()),
        index_operations=draw(st.none() | counted),
        transfers=draw(st.booleans()),
    )


few = settings(drawn, max_examples=examples(20))


@few
@given(kernel_counts())
def test_counts_survive_json(counts: KernelCounts) -> None:
    text = json.dumps(to_data(counts), allow_nan=False)
    assert from_data(json.loads(text)) == counts
    assert json.dumps(to_data(from_data(json.loads(text)))) == text


@few
@given(kernel_counts(), st.data())
def test_whatever_is_wrong_with_stored_counts_is_a_value_error(counts: KernelCounts, data: st.DataObject) -> None:
    stored: Any = json.loads(json.dumps(to_data(counts)))
    junk: st.SearchStrategy[Any] = st.sampled_from(
        [None, True, -1, 0, 10**6, 0.5, "", "0x", "word", [], [[]], [None, 3], {}, {"a": 1}]
    )
    node, depth = stored, data.draw(st.integers(1, 6))
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            break
        key, depth = data.draw(st.sampled_from(keys)), depth - 1
        if depth <= 0 or not isinstance(node[key], list | dict):
            action = data.draw(st.sampled_from(["replace", "drop", "double"]))
            if action == "replace":
                node[key] = data.draw(junk)
            elif action == "drop":
                del node[key]
            elif isinstance(node, list):
                node.append(copy.deepcopy(node[key]))
            break
        node = node[key]
    try:
        found = from_data(stored)
    except ValueError:
        return
    assert from_data(to_data(found)) == found  # what was put in happens to be counts as well


@pytest.mark.parametrize("data", [None, [], "", 3, {}, {"KernelCounts": []}], ids=repr)
def test_other_data_are_no_counts(data: Any) -> None:
    with pytest.raises(ValueError, match="one table for each class"):
        from_data(data)


@pytest.mark.parametrize(
    ("table", "row", "words"),
    [
        ("Affine", [0, [], [[0, 1]], 1], "0 is not the number of a row"),
        ("Affine", [0, [], [], 0], "a denominator is 0"),
        ("Affine", [0, [], []], "a list has 3 items and not 4"),
        ("Term", [1, [["n", 0]], []], "an exponent is not positive"),
        ("Term", [1, [["n"]], []], "a list has 1 items and not 2"),
        ("Term", [True, [], []], "bool stands where int should"),
        ("Term", ["many", [], []], "invalid literal"),
        ("Executions", [0, -1, 0, [0], [], None, 1.0], "-1 is not the number of a row"),
        ("KernelCounts", "row", "str stands where a list should"),
    ],
)
def test_a_wrong_row_is_named(table: str, row: Any, words: str) -> None:
    zero = QuasiPolynomial((), "0")
    stored = to_data(
        KernelCounts(
            operations=(),
            chains=(),
            accesses=(),
            footprints=(),
            branches=(),
            barriers=Executions(zero, None, zero, (zero,)),
            launches=zero,
            work_groups=zero,
            work_items=zero,
            local_size=(),
            subgroup_size=32,
            exact=True,
        )
    )
    assert from_data(stored).barriers == Executions(zero, None, zero, (zero,))
    stored[table] = [row, *stored[table]]
    with pytest.raises(ValueError, match=words):
        from_data(stored)


def test_two_kernels_are_not_one(matmul: pm.Kernel) -> None:
    stored = to_data(matmul.counts)
    stored["KernelCounts"] *= 2
    with pytest.raises(ValueError, match="counts of 2 kernels and not of one"):
        from_data(stored)


def test_a_kernels_counts_share_after_reading_what_they_shared_before(matmul: pm.Kernel) -> None:
    restored = from_data(json.loads(json.dumps(to_data(matmul.counts))))
    assert restored == matmul.counts
    before, after = ({id(a.executions) for a in c.accesses} for c in (matmul.counts, restored))
    assert len(after) <= len(before) < len(restored.accesses)
    assert restored.operations[0].executions in [a.executions for a in restored.accesses]
    assert any(restored.operations[0].executions is a.executions for a in restored.accesses)


def test_stored_counts_have_each_object_once(matmul: pm.Kernel) -> None:
    stored = to_data(matmul.counts)
    for name, rows in stored.items():
        assert name == "AccessCount" or len(set(map(repr, rows))) == len(rows)
        assert rows or name in ("BranchCount", "CollectiveCount", "Update")  # it has none of them
    assert len(stored["QuasiPolynomial"]) < len(matmul.counts.accesses) * 3
