"""Built-in functions, operators and conversions against Python's exact whole numbers and fractions; their forms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perfmodel as pm
from perfmodel.basics.errors import EmulationError
from perfmodel.opencl_c.builtins import BUILTINS, binary, conversion, function, reinterpretation, unary
from perfmodel.opencl_c.builtins.dot_products import DOT_PRODUCTS
from perfmodel.opencl_c.builtins.representation import dtype_of
from perfmodel.opencl_c.types import (
    BOOL,
    CHAR,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    LONG,
    SHORT,
    UCHAR,
    UINT,
    ULONG,
    USHORT,
    Pointer,
    Scalar,
    Type,
    Vector,
)
from tests.covering import examples
from tests.opencl_c.builtins_on_device import Case, some_values
from tests.opencl_c.test_builtins import (
    INTEGERS,
    any_vectors,
    arithmetic_cases,
    edge_cases,
    emulated,
    math_cases,
    rough_cases,
    shuffle_cases,
    whole_cases,
)


def convert(value: Any, source: Type, target: Type, rounding: str = "", saturate: bool = False) -> Any:
    return conversion(source, target, rounding, saturate)(value)


def reinterpret(value: Any, source: Type, target: Type) -> Any:
    return reinterpretation(source, target)(value)


ROUNDINGS = ("", "rte", "rtz", "rtp", "rtn")
FLOATS = (HALF, FLOAT, DOUBLE)
WIDTHS: Mapping[int, Literal[16, 32, 64]] = {2: 16, 4: 32, 8: 64}


def wrapped(number: int, type_: Scalar) -> int:
    bits = 8 * type_.size
    low: int = number % 2**bits
    return low - 2**bits if type_.is_signed and low >= 2 ** (bits - 1) else low


def saturated(number: int, type_: Scalar) -> int:
    info = np.iinfo(type_.dtype)
    return int(min(max(number, int(info.min)), int(info.max)))


def quotient(x: int, y: int) -> int:
    size = abs(x) // abs(y) if y else 0
    return size if (x < 0) == (y < 0) else -size


def rotated(x: int, places: int, type_: Scalar) -> int:
    bits = 8 * type_.size
    places, x = places % bits, x % 2**bits
    return wrapped(x << places | x >> (bits - places), type_)


def leading_zeros(x: int, type_: Scalar) -> int:
    return 8 * type_.size - int(x % 2 ** (8 * type_.size)).bit_length()


def trailing_zeros(x: int, type_: Scalar) -> int:
    return (x & -x).bit_length() - 1 if x else int(8 * type_.size)


Whole = Callable[[int, int, int, Scalar], int]
WHOLE: Mapping[str, tuple[int, Whole]] = {
    "abs": (1, lambda x, y, z, type_: abs(x)),
    "abs_diff": (2, lambda x, y, z, type_: abs(x - y)),
    "add_sat": (2, lambda x, y, z, type_: saturated(x + y, type_)),
    "sub_sat": (2, lambda x, y, z, type_: saturated(x - y, type_)),
    "hadd": (2, lambda x, y, z, type_: (x + y) >> 1),
    "rhadd": (2, lambda x, y, z, type_: (x + y + 1) >> 1),
    "clz": (1, lambda x, y, z, type_: leading_zeros(x, type_)),
    "ctz": (1, lambda x, y, z, type_: trailing_zeros(x, type_)),
    "popcount": (1, lambda x, y, z, type_: (x % 2 ** (8 * type_.size)).bit_count()),
    "mul_hi": (2, lambda x, y, z, type_: (x * y) >> (8 * type_.size)),
    "mad_hi": (3, lambda x, y, z, type_: wrapped(((x * y) >> (8 * type_.size)) + z, type_)),
    "mad_sat": (3, lambda x, y, z, type_: saturated(x * y + z, type_)),
    "max": (2, lambda x, y, z, type_: max(x, y)),
    "min": (2, lambda x, y, z, type_: min(x, y)),
    "rotate": (2, lambda x, y, z, type_: rotated(x, y, type_)),
    "bitselect": (3, lambda x, y, z, type_: (x & ~z) | (y & z)),
}
OPERATORS: Mapping[str, Whole] = {
    "+": lambda x, y, z, type_: wrapped(x + y, type_),
    "-": lambda x, y, z, type_: wrapped(x - y, type_),
    "*": lambda x, y, z, type_: wrapped(x * y, type_),
    "/": lambda x, y, z, type_: wrapped(quotient(x, y), type_),
    "%": lambda x, y, z, type_: x - y * quotient(x, y) if y else 0,
    "&": lambda x, y, z, type_: x & y,
    "|": lambda x, y, z, type_: x | y,
    "^": lambda x, y, z, type_: x ^ y,
    "<<": lambda x, y, z, type_: wrapped(x << (y % (8 * type_.size)), type_),
    ">>": lambda x, y, z, type_: x >> (y % (8 * type_.size)),
}


@st.composite
def whole_numbers(draw: st.DrawFn, type_: Scalar) -> int:
    """Draws numbers near powers of two, which is where things go wrong, or anywhere."""
    near = st.builds(
        lambda sign, power, step: sign * 2**power + step,
        st.sampled_from([-1, 1]),
        st.integers(0, 8 * type_.size),
        st.integers(-2, 2),
    )
    return wrapped(draw(near | st.integers(-(2**64), 2**64)), type_)


@pytest.mark.parametrize("type_", INTEGERS, ids=str)
@settings(max_examples=examples(30), deadline=None)
@given(data=st.data())
def test_whole_numbers(type_: Scalar, data: st.DataObject) -> None:
    x, y, z = (data.draw(whole_numbers(type_)) for _ in range(3))
    result = Scalar(f"u{type_.name}".replace("uu", "u"), f"u{type_.dtype}".replace("uu", "u"))
    values = [np.array([number], type_.dtype) for number in (x, y, z)]
    with np.errstate(all="ignore"):
        for name, (count, exact) in WHOLE.items():
            to = result if name.startswith("abs") else type_
            ours = function(name, to, (type_,) * count)(*values[:count])
            assert (ours.dtype, int(ours[0])) == (to.numpy, exact(x, y, z, type_)), (name, x, y, z)
        for operator, exact in OPERATORS.items():
            ours = binary(operator, type_)(*values[:2])
            assert (ours.dtype, int(ours[0])) == (type_.numpy, exact(x, y, z, type_)), (operator, x, y)
        assert int(unary("-", type_)(values[0])[0]) == wrapped(-x, type_)
        assert int(unary("~", type_)(values[0])[0]) == wrapped(~x, type_)


# --- rounding


def exactly(number: Any) -> Fraction:
    """Returns a float as a fraction; infinity as the number from which on there is nothing else."""
    if np.isinf(number):
        return Fraction(2) ** int(np.finfo(number.dtype).maxexp) * int(np.sign(number))
    return Fraction(float(number))


def rounded(exact: Fraction, dtype: np.dtype[Any], rounding: str) -> Any:
    """Returns the float that a fraction is rounded to; of a zero without its sign."""
    limit = Fraction(float(np.finfo(np.float64).max))
    with np.errstate(all="ignore"):
        guess = dtype.type(float(min(max(exact, -limit), limit)))
        around = [np.nextafter(guess, dtype.type(-np.inf)), guess, np.nextafter(guess, dtype.type(np.inf))]
    if rounding in ("rtp", "rtn") or (rounding == "rtz" and exact != 0):
        if rounding == "rtp" or (rounding == "rtz" and exact < 0):
            return min(one for one in around if one == np.inf or (np.isfinite(one) and exactly(one) >= exact))
        return max(one for one in around if one == -np.inf or (np.isfinite(one) and exactly(one) <= exact))
    last_digit = np.dtype(f"u{dtype.itemsize}")
    return min(around, key=lambda one: (abs(exactly(one) - exact), int(one.view(last_digit)) % 2))


def same(ours: Any, theirs: Any) -> bool:
    return bool(ours == theirs)


@st.composite
def some_floats(draw: st.DrawFn, dtype: np.dtype[Any]) -> Any:
    """Draws floats of few digits, of which sums and products are ties, or of any digits."""
    info = np.finfo(dtype)
    few = st.builds(
        lambda digits, power: math.ldexp(digits, power),
        st.integers(-(2**6), 2**6) | st.integers(-(2**11), 2**11),
        st.integers(int(info.minexp) - int(info.nmant), int(info.maxexp) - 12) | st.integers(-70, 70),
    )
    near_one = st.builds(lambda step: 1.0 + step * float(info.eps), st.integers(-64, 64))
    anywhere: Any = st.floats(width=WIDTHS[dtype.itemsize], allow_nan=False, allow_infinity=False)
    with np.errstate(all="ignore"):
        number = dtype.type(draw(few | near_one | anywhere))
    return number if np.isfinite(number) else dtype.type(1)


@pytest.mark.parametrize("type_", FLOATS, ids=str)
@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_fma_is_rounded_once(type_: Scalar, data: st.DataObject) -> None:
    x, y, z = (data.draw(some_floats(type_.numpy)) for _ in range(3))
    exact = exactly(x) * exactly(y) + exactly(z)
    with np.errstate(all="ignore"):
        ours = function("fma", type_, (type_,) * 3)(np.array([x]), np.array([y]), z)
    assert ours.dtype == type_.numpy
    assert same(ours[0], rounded(exact, type_.numpy, "")), (x, y, z, exact)


@pytest.mark.parametrize("target", FLOATS, ids=str)
@pytest.mark.parametrize("source", INTEGERS, ids=str)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_whole_numbers_to_floats(source: Scalar, target: Scalar, data: st.DataObject) -> None:
    number = data.draw(whole_numbers(source))
    for rounding in ROUNDINGS:
        with np.errstate(all="ignore"):
            ours = convert(np.array([number], source.dtype), source, target, rounding)
        assert same(ours[0], rounded(Fraction(number), target.numpy, rounding)), (number, rounding)


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(FLOATS, 2)), ids=str)
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_floats_to_floats(source: Scalar, target: Scalar, data: st.DataObject) -> None:
    number = data.draw(some_floats(source.numpy))
    for rounding in ROUNDINGS:
        with np.errstate(all="ignore"):
            ours = convert(np.array([number]), source, target, rounding)[0]
        assert same(ours, rounded(exactly(number), target.numpy, rounding)), (number, rounding)
        assert np.signbit(ours) == np.signbit(number)


@pytest.mark.parametrize("target", INTEGERS, ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
@settings(max_examples=examples(30), deadline=None)
@given(data=st.data())
def test_floats_to_whole_numbers(source: Scalar, target: Scalar, data: st.DataObject) -> None:
    number = data.draw(some_floats(source.numpy))
    whole: Mapping[str, Callable[[Fraction], int]]
    whole = {"": math.trunc, "rtz": math.trunc, "rte": round, "rtp": math.ceil, "rtn": math.floor}
    for rounding in ROUNDINGS:
        exact = whole[rounding](exactly(number))
        with np.errstate(all="ignore"):
            assert int(convert(np.array([number]), source, target, rounding, True)[0]) == saturated(exact, target)
            ours = convert(np.array([number]), source, target, rounding)
        assert ours.dtype == target.numpy
        assert int(ours[0]) == exact or exact != saturated(exact, target), (number, rounding)


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(INTEGERS, 2)), ids=str)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_between_whole_numbers(source: Scalar, target: Scalar, data: st.DataObject) -> None:
    number = data.draw(whole_numbers(source))
    value = np.array([number], source.dtype)
    assert int(convert(value, source, target)[0]) == wrapped(number, target)
    assert int(convert(value, source, target, saturate=True)[0]) == saturated(number, target)


def test_bools_splats_and_nans() -> None:
    lanes = np.array([0.0, -0.0, 0.5, np.nan], np.float32)
    assert convert(lanes, FLOAT, BOOL).tolist() == [False, False, True, True]
    assert convert(np.array([False, True]), BOOL, INT).tolist() == [0, 1]
    assert convert(np.bool_(True), BOOL, FLOAT).dtype == np.float32
    assert convert(np.array([1.5, -2.5]), DOUBLE, Vector(INT, 3)).tolist() == [[1, -2]] * 3
    assert convert(np.float32(2.5), FLOAT, Vector(UCHAR, 2)).tolist() == [[2], [2]]
    assert convert(np.float32(np.nan), FLOAT, UINT, saturate=True) == 0
    vector = convert(np.zeros(5, np.int32), INT, Vector(INT, 4))
    vector[1] = 7  # it can be written to, one component at a time
    assert vector.tolist() == [[0] * 5, [7] * 5, [0] * 5, [0] * 5]
    with pytest.raises(EmulationError, match="there is no rounding mode 'rtx'; did you mean"):
        convert(lanes, FLOAT, INT, "rtx")


# --- the same bits


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (FLOAT, INT),
        (DOUBLE, ULONG),
        (HALF, SHORT),
        (INT, UINT),
        (UINT, Vector(UCHAR, 4)),
        (Vector(UCHAR, 4), FLOAT),
        (FLOAT, Vector(USHORT, 2)),
        (Vector(FLOAT, 4), Vector(LONG, 2)),
        (Vector(FLOAT, 3), Vector(FLOAT, 4)),
        (Vector(FLOAT, 4), Vector(UINT, 3)),
        (Vector(HALF, 8), Vector(CHAR, 16)),
        (Vector(SHORT, 3), DOUBLE),
        (LONG, Pointer(FLOAT, "global")),
        (Pointer(FLOAT, "global"), ULONG),
        (Vector(FLOAT, 4), Vector(FLOAT, 4)),
    ],
    ids=str,
)
def test_reinterpretation_keeps_the_bytes(source: Type, target: Type) -> None:
    """The bytes of each lane in memory stay the same."""
    random = np.random.default_rng(3)

    def shape(type_: Type, lanes: int) -> tuple[int, ...]:
        return (type_.width, lanes) if isinstance(type_, Vector) else (lanes,)

    for lanes in (1, 7):
        raw = random.integers(0, 256, (*shape(source, lanes), dtype_of(source).itemsize), dtype=np.uint8)
        value = raw.view(dtype_of(source))[..., 0]
        ours = np.asarray(reinterpret(value, source, target)).reshape(shape(target, lanes))
        assert ours.dtype == dtype_of(target)
        for lane in range(lanes):
            before, after = value[..., lane].tobytes(), ours[..., lane].tobytes()
            size = min(len(before), len(after))
            assert after[:size] == before[:size]
    if not isinstance(source, Vector):
        ours, theirs = reinterpret(value[0], source, target), reinterpret(value[:1], source, target)
        assert isinstance(ours, np.ndarray if isinstance(target, Vector) else np.generic)
        assert ours.tobytes() == theirs.tobytes()


# --- names and forms


def all_cases() -> list[Case]:
    return [*math_cases(), *rough_cases(), *arithmetic_cases(), *edge_cases(), *whole_cases(), *shuffle_cases()]


def test_every_function_is_tested() -> None:
    assert {case.name for case in all_cases()} == set(BUILTINS) - {"nan"} - set(DOT_PRODUCTS)


@pytest.mark.parametrize("name", DOT_PRODUCTS)
def test_dot_products(name: str) -> None:
    """Packed or not, with a sum that is cut off at the ends of its type or without."""
    random = np.random.default_rng(5)
    kinds = name.split("_")[-2] if "packed" in name else "ss"
    words = [random.integers(0, 1 << 32, 300, dtype=np.uint32) for _ in kinds]
    result = UINT if name.endswith("uint") else INT
    ends = np.iinfo(result.numpy)
    sums = random.choice([ends.min, 0, 17, ends.max], 300).astype(result.numpy)
    parts = [word.view("i1" if kind == "s" else "u1").reshape(-1, 4) for word, kind in zip(words, kinds, strict=True)]
    if "packed" in name:
        types: tuple[Type, ...] = (UINT, UINT)
        values: list[Any] = list(words)
    else:
        types = (Vector(CHAR, 4),) * 2
        values = [part.T for part in parts]
    if "acc" in name:
        types, values = (*types, result), [*values, sums]
    found = function(name, result, types)(*values)
    for lane, (left, right, start) in enumerate(zip(*parts, sums, strict=True)):
        exact = sum(int(a) * int(b) for a, b in zip(left, right, strict=True))
        exact = min(max(exact + int(start), ends.min), ends.max) if "acc" in name else exact
        assert int(found[lane]) == exact, (name, lane)


def test_values_that_all_work_items_share() -> None:
    """Numpy scalars, and vectors of one column, give what arrays give, and stay that; they mix with arrays."""
    for case in all_cases():
        values = (any_vectors if case.name.startswith("shuffle") else some_values)(case.arguments)
        lanes = range(0, values[0].shape[-1], values[0].shape[-1] // 2)
        whole = emulated(case, values)
        form = function(case.name, case.result, case.arguments)
        for lane in lanes:
            shared = [
                value[:, lane : lane + 1] if isinstance(type_, Vector) else value[lane]
                for value, type_ in zip(values, case.arguments, strict=True)
            ]
            mixed = [*values[:1], *shared[1:]]
            with np.errstate(all="ignore"):
                ours, others = form(*shared), form(*mixed)
            assert isinstance(ours, np.ndarray if isinstance(case.result, Vector) else np.generic), case
            expected = whole[..., lane : lane + 1] if isinstance(case.result, Vector) else whole[lane]
            np.testing.assert_array_equal(ours, expected, str(case))
            np.testing.assert_array_equal(others[..., lane], whole[..., lane], str(case))
            assert ours.dtype == others.dtype == whole.dtype, case


@pytest.mark.parametrize(("type_", "code"), [(FLOAT, UINT), (DOUBLE, ULONG), (HALF, USHORT)])
def test_nan_takes_a_number(type_: Scalar, code: Scalar) -> None:
    ours = function("nan", type_, (code,))(np.array([0, 5], code.dtype))
    assert np.isnan(ours).all()
    assert (ours.view(code.dtype) & 7).tolist() == [0, 5]
    assert ours.dtype == type_.numpy


def test_unknown_names() -> None:
    with pytest.raises(EmulationError, match="no built-in function 'sqr'; did you mean 'sqrt'"):
        function("sqr", FLOAT, (FLOAT,))
    with pytest.raises(EmulationError, match=r"no operator '\*\*' on values of type int"):
        binary("**", INT)
    with pytest.raises(EmulationError, match=r"no operator '\+' on a value of type int"):
        unary("+", INT)


def test_numpys_own_functions_where_they_do() -> None:
    for type_ in (*INTEGERS, *FLOATS, Vector(FLOAT, 4)):
        assert (binary("+", type_), binary("*", type_)) == (np.add, np.multiply)
    assert binary("/", FLOAT) is np.true_divide
    assert binary("<", LONG) is np.less


def test_what_clang_has_in_every_language() -> None:
    source = """__kernel void k(__global const uint *x, __global int *y)
    {
        int i = get_global_id(0);
        if (__builtin_expect(x[i] == 0, 0)) { y[i] = -1; return; }
        __builtin_assume(x[i] > 0);
        y[i] = __builtin_popcount(x[i]) + 100 * __builtin_clz(x[i]) + 10000 * __builtin_ctz(x[i]);
    }"""
    x = np.array([0, 1, 2**31, 2**32 - 1, *np.random.default_rng(1).integers(0, 2**32, 60)], np.uint32)
    kernel = pm.Kernel.from_opencl(source, "k", 64, 32, {"x": 64, "y": 64})
    found = pm.emulate(kernel, groups="all", arrays={"x": x}).array("y")
    bits = [f"{number:b}" for number in x.tolist()]
    expected = [one.count("1") + 100 * (32 - len(one)) + 10000 * (len(one) - len(one.rstrip("0"))) for one in bits]
    assert found.tolist() == [-1, *expected[1:]]
