"""Built-in functions, operators and conversions in numpy, against Intel's OpenCL runtime and Python's exact numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from perfmodel.device import Device
from perfmodel.opencl_c.builtins import (
    binary,
    conversion,
    function,
    unary,
)
from perfmodel.opencl_c.builtins.representation import dtype_of, unsigned
from perfmodel.opencl_c.types import (
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
    Scalar,
    Type,
    Vector,
    element_of,
    width_of,
)
from tests.opencl_c.builtins_on_device import Case, Value, call, evaluated, some_values

INTEGERS = (CHAR, UCHAR, SHORT, USHORT, INT, UINT, LONG, ULONG)
FLOATS = (FLOAT, DOUBLE, HALF)
NUMBERS = (*INTEGERS, *FLOATS)
SIGNED = {integer.size: integer for integer in INTEGERS[::2]}
UNSIGNED = {integer.size: integer for integer in INTEGERS[1::2]}

EXACT = (
    *("ceil", "copysign", "fabs", "fdim", "floor", "fma", "fmax", "fmin", "fmod", "fract.0", "fract.1", "frexp.0"),
    *("frexp.1", "ilogb", "ldexp", "lgamma_r.1", "logb", "maxmag", "minmag", "modf.0", "modf.1", "nextafter"),
    *("remainder", "remquo.0", "remquo.1", "rint", "round", "trunc"),
)
ULPS: Mapping[str, float] = {
    **dict.fromkeys(EXACT, 0),
    **dict.fromkeys(("acos", "acosh", "asin", "asinh", "cos", "cosh", "hypot", "sin"), 4),
    **dict.fromkeys(("cospi", "sincos.0", "sincos.1", "sinh", "sinpi"), 4),
    **dict.fromkeys(("acospi", "asinpi", "atan", "atanh", "atanpi", "tan", "tanh"), 5),
    **dict.fromkeys(("atan2", "atan2pi", "tanpi"), 6),
    **dict.fromkeys(("cbrt", "log1p", "rsqrt"), 2),
    **dict.fromkeys(("exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "sqrt"), 3),
    **dict.fromkeys(("erf", "erfc", "pow", "pown", "powr", "rootn", "tgamma", "lgamma", "lgamma_r.0"), 16),
}
"""Units in the last place by which a device may be off (OpenCL C 1.2, section 7.4); lgamma's are none of its."""
UNARY = (
    *("acos", "acosh", "acospi", "asin", "asinh", "asinpi", "atan", "atanh", "atanpi", "cbrt", "ceil", "cos", "cosh"),
    *("cospi", "erf", "erfc", "exp", "exp10", "exp2", "expm1", "fabs", "floor", "fract.0", "fract.1", "frexp.0"),
    *("lgamma", "lgamma_r.0", "log", "log10", "log1p", "log2", "logb", "modf.0", "modf.1", "rint", "round", "rsqrt"),
    *("sin", "sincos.0", "sincos.1", "sinh", "sinpi", "sqrt", "tan", "tanh", "tanpi", "tgamma", "trunc"),
)
UNARY_TO_INT = ("frexp.1", "ilogb", "lgamma_r.1")
BINARY = (
    *("atan2", "atan2pi", "copysign", "fdim", "fmax", "fmin", "fmod", "hypot", "maxmag", "minmag", "nextafter"),
    *("pow", "powr", "remainder", "remquo.0"),
)
WITH_INT = ("ldexp", "pown", "rootn")
ROUGH_UNARY = ("cos", "exp", "exp2", "exp10", "log", "log2", "log10", "recip", "rsqrt", "sin", "sqrt", "tan")
ROUGH_BINARY = ("divide", "powr")
HALF_ULPS, NATIVE_ULPS = 8192, 16384
"""Units in the last place by which ``half_`` functions may be off; ``native_`` ones have no limit, and this holds for
moderate numbers."""
TESTED = ("isfinite", "isinf", "isnan", "isnormal", "signbit")
COMPARED = (
    *("isequal", "isnotequal", "isgreater", "isgreaterequal", "isless", "islessequal", "islessgreater"),
    *("isordered", "isunordered"),
)
WHOLE_UNARY = ("clz", "ctz", "popcount")
WHOLE_BINARY = ("add_sat", "sub_sat", "hadd", "rhadd", "max", "min", "mul_hi", "rotate")
WHOLE_TERNARY = ("clamp", "mad_hi", "mad_sat", "bitselect")
SUM_ULPS = 8
"""The tolerance of sums of products, as a part of the sum of their magnitudes: the order of operations is the device's
choice."""


def of_width(element: Scalar, width: int) -> Scalar | Vector:
    return Vector(element, width) if width > 1 else element


def shape_of(type_: Type, lanes: int) -> tuple[int, ...]:
    return (type_.width, lanes) if isinstance(type_, Vector) else (lanes,)


def emulated(case: Case, values: tuple[Value, ...]) -> Value:
    with np.errstate(all="ignore"):
        form = function(case.name, case.result, case.arguments)
        result = form(*values)
    assert result.dtype == dtype_of(case.result), case
    assert result.shape == shape_of(case.result, values[0].shape[-1]), case
    return np.asarray(result)


def assert_same(ours: Value, theirs: Value, case: object, values: tuple[Value, ...], where: Any = None) -> None:
    """Asserts that values are equal bit for bit, but for what is no number."""
    is_wrong = ours.view(unsigned(ours.dtype)) != theirs.view(unsigned(theirs.dtype))
    if ours.dtype.kind == "f":
        is_wrong &= ~(np.isnan(ours) & np.isnan(theirs))
    fail_where(is_wrong, ours, theirs, case, values, where)


def assert_near(
    ours: Value, theirs: Value, ulps: float, case: object, values: tuple[Value, ...], where: Any = None
) -> None:
    """Asserts that values are within some units in the last place of what the device has."""
    with np.errstate(all="ignore"):
        limit = np.finfo(ours.dtype).max
        mine, other = (np.clip(side, -limit, limit) for side in (ours, theirs))
        unit = np.spacing(np.minimum(np.abs(other), np.nextafter(limit, ours.dtype.type(0)))).astype(np.float64)
        distance = np.abs(mine.astype(np.float64) - other.astype(np.float64)) / unit
        is_wrong = ~(distance <= ulps) & ~(np.isnan(ours) & np.isnan(theirs))
    fail_where(is_wrong, ours, theirs, case, values, where)


def fail_where(
    is_wrong: Value, ours: Value, theirs: Value, case: object, values: tuple[Value, ...], where: Any
) -> None:
    if where is not None:
        is_wrong = is_wrong & where
    if is_wrong.any():
        *component, lane = (int(axis[0]) for axis in is_wrong.nonzero())
        shown = [value[..., lane].tolist() for value in values]
        place = (*component, lane)
        pytest.fail(f"{case}: {is_wrong.sum()} wrong; of {shown}: {ours[place]!r}, device {theirs[place]!r}")


# --- math functions


def math_cases() -> Iterator[Case]:
    for element, width in itertools.product(FLOATS, (1, 4)):
        type_, integer = of_width(element, width), of_width(INT, width)
        for name in UNARY:
            yield call(name, type_, type_)
        for name in UNARY_TO_INT:
            yield call(name, integer, type_)
        for name in BINARY:
            yield call(name, type_, type_, type_)
        yield call("remquo.1", integer, type_, type_)
        for name in WITH_INT:
            yield call(name, type_, type_, integer)
        yield call("fma", type_, type_, type_, type_)


def defined(case: Case, values: tuple[Value, ...]) -> Any:
    """Returns a mask of the values for which the specification leaves no choice, None for all."""
    x, y = values[0], values[-1]
    if case.name == "lgamma_r.1":
        return (x > 0) | (np.floor(x) != x)  # at a pole there is no sign
    if case.name in ("fmax", "fmin", "maxmag", "minmag"):
        return (x != 0) | (y != 0)  # the sign of a zero
    if case.name == "remquo.1":
        return np.isfinite(x) & ~np.isnan(y) & (y != 0)
    if case.name == "fract.0" and element_of(case.result) == HALF:
        return np.isfinite(x) & (x != 0)  # the device has just less than one for infinity, and no negative zero
    return None


def low_bits(quotient: Value) -> Any:
    """Returns what ``remquo`` promises of the quotient."""
    return (np.sign(quotient) * (np.abs(quotient.astype(np.int64)) & 127)).astype(np.int32)


def test_math(cpu: Device) -> None:
    for batch in evaluated(cpu, math_cases(), some_values):
        for case in batch.cases:
            ours, theirs = emulated(case, batch.values), batch.results[case]
            check_math(case, batch.values, ours, theirs)


def check_math(case: Case, values: tuple[Value, ...], ours: Value, theirs: Value) -> None:
    where = defined(case, values)
    if case.name == "remquo.1":
        theirs = low_bits(theirs)
    if case.name.startswith("lgamma") and case.name != "lgamma_r.1":  # near its zeros all digits may be lost
        where = np.isinf(ours) | (np.abs(ours) > 1)
    if ULPS[case.name]:
        assert_near(ours, theirs, ULPS[case.name], case, values, where)
    else:
        assert_same(ours, theirs, case, values, where)


def rough_cases() -> Iterator[Case]:
    for width, prefix in itertools.product((1, 4), ("half", "native")):
        type_ = of_width(FLOAT, width)
        for name in ROUGH_UNARY:
            yield call(f"{prefix}_{name}", type_, type_)
        for name in ROUGH_BINARY:
            yield call(f"{prefix}_{name}", type_, type_, type_)


def moderate_values(arguments: tuple[Type, ...]) -> tuple[Value, ...]:
    """Returns numbers of which squares and quotients are of moderate size too, as are their logarithms."""
    random = np.random.default_rng(1)
    shapes = [shape_of(type_, 1500) for type_ in arguments]
    return tuple(
        (random.uniform(1.25, 8, shape) * random.choice([-1, 1], shape)).astype(dtype_of(type_))
        for shape, type_ in zip(shapes, arguments, strict=True)
    )


def test_rough_math(cpu: Device) -> None:
    """Results of rough functions may be off by units in the last place of one, or of larger results."""
    for batch in evaluated(cpu, rough_cases(), moderate_values):
        for case in batch.cases:
            ours, theirs = emulated(case, batch.values), batch.results[case]
            ulps = HALF_ULPS if case.name.startswith("half") else NATIVE_ULPS
            allowed = ulps * np.spacing(np.maximum(np.abs(theirs), np.float32(1)))
            is_wrong = ~(np.abs(ours - theirs) <= allowed) & ~(np.isnan(ours) & np.isnan(theirs))
            fail_where(is_wrong, ours, theirs, case, batch.values, None)


# --- common, geometric and relational functions


def arithmetic_cases() -> Iterator[Case]:
    for element, width in itertools.product(FLOATS, (1, 3, 4)):
        type_ = of_width(element, width)
        for name in ("degrees", "radians", "sign"):
            yield call(name, type_, type_)
        for name in ("max", "min", "step"):
            yield call(name, type_, type_, type_)
        if element != HALF:  # the device fails to compile some of these, and has negative lengths
            yield call("normalize", type_, type_)
            yield call("length", element, type_)
            for name in ("dot", "distance"):
                yield call(name, element, type_, type_)
        for name in ("clamp", "mix", "smoothstep", "mad"):
            yield call(name, type_, type_, type_, type_)
        if width > 1:
            yield call("cross", type_, type_, type_)
            for name in ("max", "min"):
                yield call(name, type_, type_, element)
            yield call("step", type_, element, type_)
            yield call("clamp", type_, type_, element, element)
            yield call("smoothstep", type_, element, element, type_)
            yield call("mix", type_, type_, type_, element)
        if element == FLOAT:
            yield call("fast_length", element, type_)
            yield call("fast_normalize", type_, type_)
            yield call("fast_distance", element, type_, type_)


def magnitude(name: str, values: tuple[Value, ...]) -> Value:
    """Returns the magnitude of the terms of a result, of which rounding errors are parts."""
    x, *others = (np.abs(value.astype(np.float64)) for value in values)
    match name, others:
        case "dot", [y]:
            return np.asarray((x * y).sum(axis=0) if x.ndim > 1 else x * y)
        case "cross", [y]:
            return np.asarray(x.sum(axis=0) * y.sum(axis=0) + 0 * x)
        case "distance" | "fast_distance", [y]:
            return np.asarray(np.linalg.norm(x + y, axis=0) if x.ndim > 1 else x + y)
        case "mix", [y, part]:
            return np.asarray(x + (x + y) * part)
        case "mad", [y, z]:
            return np.asarray(x * y + z)
        case "smoothstep", [high, value]:  # of the slope at most, times what differences have lost
            low, high, value = values
            with np.errstate(divide="ignore"):
                steps = (np.abs(value) + np.abs(low)) / np.abs(np.subtract(high, low, dtype=np.float64))
            return np.asarray(1 + steps)
    return np.asarray(0 * x)


def test_plain_arithmetic(cpu: Device) -> None:
    for batch in evaluated(cpu, arithmetic_cases(), moderate_values):
        for case in batch.cases:
            ours, theirs = emulated(case, batch.values), batch.results[case]
            where = None
            if case.name in ("clamp", "smoothstep"):
                where = (batch.values[1] if case.name == "clamp" else batch.values[0]) < (
                    batch.values[2] if case.name == "clamp" else batch.values[1]
                )
            if case.name in ("max", "min", "step", "sign", "clamp"):
                assert_same(ours, theirs, case, batch.values, where)
                continue
            eps = np.finfo(dtype_of(case.result)).eps
            size = np.maximum(np.abs(theirs.astype(np.float64)), magnitude(case.name, batch.values))
            ulps = HALF_ULPS if case.name.startswith("fast") else SUM_ULPS
            is_wrong = ~(np.abs(ours.astype(np.float64) - theirs) <= ulps * eps * size)
            fail_where(is_wrong, ours, theirs, case, batch.values, where)


def edge_cases() -> Iterator[Case]:
    for element, width in itertools.product(FLOATS, (1, 4)):
        type_ = of_width(element, width)
        yield call("sign", type_, type_)
        if element != HALF:
            yield call("normalize", type_, type_)
            yield call("length", element, type_)
        answer = INT if width == 1 else Vector(SIGNED[element.size], width)
        for name in TESTED:
            yield call(name, answer, type_)
        for name in COMPARED:
            yield call(name, answer, type_, type_)
        for condition in (SIGNED, UNSIGNED):
            yield call("select", type_, type_, type_, of_width(condition[element.size], width))
        yield call("bitselect", type_, type_, type_, type_)


def test_edge_cases_of_floats(cpu: Device) -> None:
    for batch in evaluated(cpu, edge_cases(), some_values):
        for case in batch.cases:
            ours, theirs = emulated(case, batch.values), batch.results[case]
            if case.name in ("length", "normalize"):
                is_finite = np.isfinite(batch.values[0])
                where = is_finite.all(axis=0) if isinstance(case.arguments[0], Vector) else is_finite
                assert_near(ours, theirs, SUM_ULPS, case, batch.values, where)
            else:
                assert_same(ours, theirs, case, batch.values)


# --- integer functions, shuffles


def whole_cases() -> Iterator[Case]:
    for element, width in itertools.product(INTEGERS, (1, 3, 4)):
        type_, positive = of_width(element, width), of_width(UNSIGNED[element.size], width)
        yield call("abs", positive, type_)
        yield call("abs_diff", positive, type_, type_)
        for name in WHOLE_UNARY:
            yield call(name, type_, type_)
        for name in WHOLE_BINARY:
            yield call(name, type_, type_, type_)
        for name in WHOLE_TERNARY:
            if name == "mad_sat" and element in (INT, UINT, LONG):  # Intel's are wrong: of 1, 1, 2^32 - 1 it is 0
                continue
            yield call(name, type_, type_, type_, type_)
        for condition in (SIGNED, UNSIGNED):
            yield call("select", type_, type_, type_, of_width(condition[element.size], width))
        if element.size < 8:
            wide = (SIGNED if element.is_signed else UNSIGNED)[2 * element.size]
            yield call("upsample", of_width(wide, width), type_, positive)
        if width > 1:
            for name in ("max", "min"):
                yield call(name, type_, type_, element)
            yield call("clamp", type_, type_, element, element)
        if element.is_signed:
            yield call("any", INT, type_)
            yield call("all", INT, type_)
        if element.size == 4:
            yield call("mul24", type_, type_, type_)
            yield call("mad24", type_, type_, type_, type_)


def test_integers(cpu: Device) -> None:
    for batch in evaluated(cpu, whole_cases(), some_values):
        for case in batch.cases:
            ours, theirs = emulated(case, batch.values), batch.results[case]
            where = None
            if case.name == "clamp":
                where = batch.values[1] <= batch.values[2]
            if case.name.endswith("24"):
                low, high = (-(2**23), 2**23) if element_of(case.result).is_signed else (0, 2**24)
                where = np.logical_and.reduce([(value >= low) & (value < high) for value in batch.values[:2]])
            assert_same(ours, theirs, case, batch.values, where)


def shuffle_cases() -> Iterator[Case]:
    for element, before, after in itertools.product((UCHAR, SHORT, FLOAT, DOUBLE), (2, 4, 8), (2, 4, 16)):
        type_, result = Vector(element, before), Vector(element, after)
        mask = Vector(UNSIGNED[element.size], after)
        yield call("shuffle", result, type_, mask)
        yield call("shuffle2", result, type_, type_, mask)


def any_vectors(arguments: tuple[Type, ...]) -> tuple[Value, ...]:
    random = np.random.default_rng(2)
    return tuple(random.integers(0, 100, (width_of(type_), 64)).astype(dtype_of(type_)) for type_ in arguments)


def test_shuffles(cpu: Device) -> None:
    for batch in evaluated(cpu, shuffle_cases(), any_vectors):
        for case in batch.cases:
            assert_same(emulated(case, batch.values), batch.results[case], case, batch.values)


# --- operators


COMPARISONS = ("<", "<=", ">", ">=", "==", "!=", "!")


def operator_cases() -> Iterator[Case]:
    for element, width in itertools.product(NUMBERS, (1, 4)):
        type_ = of_width(element, width)
        answer = INT if width == 1 else Vector(SIGNED[element.size], width)
        for operator in COMPARISONS[:-1]:
            yield Case(operator, f"r = a {operator} b;", answer, (type_, type_))
        for operator in "+-*/" if element.is_float else "+-*/%&|^":
            yield Case(operator, f"r = a {operator} b;", type_, (type_, type_))
        yield Case("-", "r = -a;", type_, (type_,))
        if not element.is_float:
            yield Case("~", "r = ~a;", type_, (type_,))
            yield Case("!", "r = !a;", answer, (type_,))
            if width > 1 or element.size >= 4:  # smaller scalars are promoted before they are shifted
                for operator, count in itertools.product(
                    ("<<", ">>"), (type_, of_width(UNSIGNED[element.size], width))
                ):
                    yield Case(operator, f"r = a {operator} b;", type_, (type_, count))


def test_operators(cpu: Device) -> None:
    for batch in evaluated(cpu, operator_cases(), some_values):
        for case in batch.cases:
            type_, is_whole = case.arguments[0], not element_of(case.arguments[0]).is_float
            with np.errstate(all="ignore"):
                form = (binary if len(case.arguments) == 2 else unary)(case.name, type_)
                ours = form(*batch.values)
            is_test = case.name in COMPARISONS
            assert ours.dtype == (np.bool_ if is_test and width_of(type_) == 1 else dtype_of(case.result)), case
            where = None
            if case.name in "/%" and is_whole:
                x, y = batch.values
                has_wrapped = (x == np.iinfo(x.dtype).min) & (
                    y == y.dtype.type(-1 if element_of(type_).is_signed else 0)
                )
                where = (y != 0) & ~has_wrapped
            theirs = batch.results[case]
            if case.name == "/" and element_of(type_) == FLOAT:
                assert_near(ours, theirs, 2.5, case, batch.values)
            else:
                assert_same(ours.astype(theirs.dtype), theirs, case, batch.values, where)


# --- conversions


def conversion_cases() -> Iterator[tuple[Case, str, bool]]:
    for source, target, width in itertools.product(NUMBERS, NUMBERS, (1, 4)):
        for rounding, saturate in itertools.product(("", "rte", "rtz", "rtp", "rtn"), (False, True)):
            if saturate and target.is_float:
                continue
            before, after = of_width(source, width), of_width(target, width)
            name = f"convert_{after}{'_sat' * saturate}{rounding and '_' + rounding}"
            yield Case(name, f"r = {name}(a);", after, (before,)), rounding, saturate


def test_conversions(cpu: Device) -> None:
    """Conversions of what is out of range are undefined for floats, unless they saturate; no number may be 0 then, and
    none is here."""
    modes = {case: (rounding, saturate) for case, rounding, saturate in conversion_cases()}
    for batch in evaluated(cpu, modes, some_values):
        for case in batch.cases:
            rounding, saturate = modes[case]
            with np.errstate(all="ignore"):
                ours = conversion(case.arguments[0], case.result, rounding, saturate)(batch.values[0])
            assert ours.dtype == dtype_of(case.result)
            assert_same(ours, batch.results[case], case, batch.values, convertible(case, batch.values[0], saturate))


def convertible(case: Case, x: Value, saturate: bool) -> Value | None:
    if not element_of(case.arguments[0]).is_float or element_of(case.result).is_float:
        return None
    if saturate:
        return ~np.isnan(x)
    info = np.iinfo(dtype_of(case.result))
    wide = x.astype(np.float64)
    return (wide >= float(info.min)) & (wide + 1 < float(info.max))
