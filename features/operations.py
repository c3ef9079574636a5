"""Arithmetic operations by kind and type: ``f_op_float32_madd``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.counts import KernelCounts, OperationCount
from perfmodel.errors import FeatureError
from perfmodel.feature_name import FeatureName, Word
from perfmodel.granularity import WORKITEM, Granularity, parse_granularity
from perfmodel.vocabulary import CountedFeature, FeatureFamily, unknown_word

DTYPES = (
    *("float16", "float32", "float64", "complex64", "complex128"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)
ARITHMETIC = ("add", "mul", "madd", "div", "mod", "pow", "min", "max", "compare", "bitwise", "shift")
SPECIAL_FUNCTIONS = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh", "erf", "erfc"),
    *("conj", "imag", "isfinite", "isinf", "isnan", "real"),
    *("exp", "exp10", "exp2", "expm1", "fabs", "floor", "fma", "fmax", "fmin", "fmod", "hypot", "lgamma", "log"),
    *("log10", "log1p", "log2", "rint", "round", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc"),
)
KINDS = (*ARITHMETIC, "special", *SPECIAL_FUNCTIONS)


class OperationFeature(CountedFeature):
    """Executions of the operations that a name selects, by work-items unless it asks for another granularity.

    A multiply that feeds an add of its type counts as one ``madd`` and not as ``mul`` and ``add``; with
    ``contract:off`` (OpenCL C's word for it) a name counts them apart. ``special`` stands for all special functions.
    """

    unit = "operation"

    def __init__(
        self, name: FeatureName, dtype: str | None, kind: str | None, contract: bool, granularity: Granularity
    ) -> None:
        super().__init__(name)
        self.granularity = granularity
        self.subgroup_size = granularity.subgroup_size
        self.dtype = dtype
        self.kind = kind
        self.contract = contract

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        total = np.asarray(0.0)
        for operation in counts.operations:
            if self.dtype in (None, operation.dtype) and (weight := self.weight(operation)):
                total = total + weight * self.granularity.executions(operation.executions, self.name)(sizes)
        return total

    def weight(self, operation: OperationCount) -> int:
        kinds = {operation.kind: operation.per_execution}
        if operation.kind == "madd" and not self.contract:
            kinds = {"add": operation.per_execution, "mul": operation.per_execution}
        if self.kind is None:
            return sum(kinds.values())
        if self.kind == "special":
            return sum(n for kind, n in kinds.items() if kind not in ARITHMETIC)
        return kinds.get(self.kind, 0)


class OperationFamily(FeatureFamily):
    prefix = ("op",)
    summary = "arithmetic operations, by type and kind (index arithmetic is not counted)"
    examples = ("f_op_float32_madd", "f_op_float64_special", "f_op_float32_mul_contract:off")

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        yield self.name
        for operation in counts.operations:
            typed = f"{self.name}_{operation.dtype}"
            yield from (typed, f"{typed}_{operation.kind}")
            if operation.kind not in ARITHMETIC:
                yield f"{typed}_special"

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> OperationFeature:
        found: dict[str, Word] = {}
        for word in words:
            role = self.role(name, word)
            if role in found:
                raise FeatureError(f"feature {name.text!r} gives its {role} twice; leave one out", word.offset)
            found[role] = word
        dtype, kind = (found[role].key if role in found else None for role in ("dtype", "kind"))
        contract = "contract" not in found or found["contract"].condition == "on"
        if kind == "madd" and not contract:
            raise FeatureError(
                f"{name.text!r} asks for multiply-adds and, with contract:off, for none; leave one out",
                found["contract"].offset,
            )
        granularity = parse_granularity(found["granularity"]) if "granularity" in found else WORKITEM
        return OperationFeature(name, dtype, kind, contract, granularity)

    def role(self, name: FeatureName, word: Word) -> str:
        if word.key == "contract" and word.condition is not None:
            if word.condition not in ("on", "off"):
                raise FeatureError(f"contract:{word.condition} is neither contract:on nor contract:off", word.offset)
            return "contract"
        if word.key == "granularity" and word.condition is not None:
            return "granularity"
        if word.condition is None and word.key in DTYPES:
            return "dtype"
        if word.condition is None and word.key in KINDS:
            return "kind"
        raise unknown_word(name, word, (*DTYPES, "contract", "granularity", *KINDS))
