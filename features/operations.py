"""Arithmetic operations by kind and type: ``f_op_float32_madd``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.counts import KernelCounts
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.granularity import WORKITEM, Granularity, once_a_body, parse_granularity
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, by_role, unknown_word

DTYPES = (
    *("float16", "float32", "float64", "complex64", "complex128"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)
OPERATED = (*DTYPES, "bfloat16", "float8", "tfloat32")
"""The types of operations, also those that memory holds as bits and numpy lacks."""
ARITHMETIC = ("add", "mul", "madd", "mma", "div", "mod", "pow", "min", "max", "compare", "bitwise", "shift", "convert")
SPECIAL_FUNCTIONS = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh", "erf", "erfc"),
    *("conj", "imag", "isfinite", "isinf", "isnan", "real"),
    *("exp", "exp10", "exp2", "expm1", "fabs", "floor", "fmod", "hypot", "lgamma", "log"),
    *("log10", "log1p", "log2", "native", "rint", "round", "rsqrt", "sin", "sinh", "sqrt"),
    *("tan", "tanh", "tgamma", "trunc"),
)
KINDS = (*ARITHMETIC, "special", *SPECIAL_FUNCTIONS)
COUNTED_AS = {"fma": "madd", "fmax": "max", "fmin": "min"}
"""Functions that people look for by their own names, with the kinds that their calls count as."""


class OperationFeature(CountedFeature):
    """Executions of the operations that a name selects, by work-items unless it asks for another granularity.

    A multiply that feeds an add of its type counts as one ``madd`` and not as ``mul`` and ``add``; with
    ``contract:off`` (OpenCL C's word for it) a name counts them apart. ``mma`` are multiply-adds of tensor cores, by
    the type of their factors. ``special`` stands for all special functions, ``native`` for the rough ones that a GPU
    has an instruction for.
    ``index`` counts arithmetic of addresses, loops and conditions instead, of kernels that are counted as compiled.
    ``carried`` counts only operations on an instruction's own result of a loop's iteration before, which wait for each
    other; of several such instructions in one loop body, which don't, those of the one that has most.
    """

    unit = "operation"

    def __init__(
        self,
        name: FeatureName,
        dtype: str | None,
        kind: str | None,
        contract: bool,
        granularity: Granularity,
        carried: bool,
        index: bool,
    ) -> None:
        super().__init__(name)
        self.granularity = granularity
        self.subgroup_size = granularity.subgroup_size
        self.dtype = dtype
        self.kind = kind
        self.contract = contract
        self.carried = carried
        self.index = self.of_compiled = index

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        return self.granularity.largest(partial(self.of_chains if self.carried else self.of_all, counts, sizes))

    def of_all(
        self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]], granularity: Granularity
    ) -> NDArray[np.float64]:
        total = np.asarray(0.0)
        operations = counts.index_operations if self.index else counts.operations
        if operations is None:
            raise FeatureError(
                f"feature {self.name!r} is of index arithmetic, which only kernels have that are counted as compiled; "
                "give kernel.as_compiled()"
            )
        for operation in operations:
            if weight := self.weight(operation.kind, operation.dtype, operation.per_execution):
                total = total + weight * granularity.executions(operation.executions, self.name)(sizes)
        return total

    def of_chains(
        self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]], granularity: Granularity
    ) -> NDArray[np.float64]:
        return once_a_body(
            (chain.loops, weight * granularity.executions(chain.iterations, self.name)(sizes))
            for chain in counts.chains
            if (weight := sum(self.weight(*operation) for operation in chain.operations))
        )

    def weight(self, kind: str, dtype: str, times: int) -> int:
        """Returns how many of these operations the name selects."""
        if self.dtype not in (None, dtype):
            return 0
        kinds = {kind: times}
        if kind == "madd" and not self.contract:
            kinds = {"add": times, "mul": times}
        if self.kind is None:
            return sum(kinds.values())
        if self.kind == "special":
            return sum(n for kind, n in kinds.items() if kind not in ARITHMETIC)
        return kinds.get(self.kind, 0)


class OperationFamily(FeatureFamily):
    prefix = ("op",)
    summary = "arithmetic operations, by type and kind (index arithmetic is counted only by the word index)"
    examples = ("f_op_float32_madd", "f_op_float64_special", "f_op_float32_mul_contract:off", "f_op_float32_carried")

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        yield self.name
        for operation in counts.operations:
            typed = f"{self.name}_{operation.dtype}"
            yield from (typed, f"{typed}_{operation.kind}")
            if operation.kind not in ARITHMETIC:
                yield f"{typed}_special"
        if counts.chains:
            yield f"{self.name}_carried"

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> OperationFeature:
        found = by_role(name, words, self.role)
        dtype, kind = (found[role].key if role in found else None for role in ("dtype", "kind"))
        contract = "contract" not in found or found["contract"].condition == "on"
        if kind == "madd" and not contract:
            raise FeatureError(
                f"{name.text!r} asks for multiply-adds and, with contract:off, for none; leave one out",
                found["contract"].offset,
            )
        granularity = parse_granularity(found["granularity"]) if "granularity" in found else WORKITEM
        if "carried" in found and "contract" in found:
            raise FeatureError(
                f"carried operations of {name.text!r} are contracted; leave contract out", found["contract"].offset
            )
        if "carried" in found and "index" in found:
            raise FeatureError(f"{name.text!r} asks for carried and for index operations; leave one out")
        return OperationFeature(name, dtype, kind, contract, granularity, "carried" in found, "index" in found)

    def role(self, name: FeatureName, word: Word) -> tuple[str, Word]:
        if word.key == "contract" and word.condition is not None:
            if word.condition not in ("on", "off"):
                raise FeatureError(f"contract:{word.condition} is neither contract:on nor contract:off", word.offset)
            return "contract", word
        if word.key == "granularity" and word.condition is not None:
            return "granularity", word
        if word.condition is None and word.key in ("carried", "index"):
            return word.key, word
        if word.condition is None and word.key in OPERATED:
            return "dtype", word
        if word.condition is None and word.key in KINDS:
            return "kind", word
        if word.condition is None and word.key in COUNTED_AS:
            kind = COUNTED_AS[word.key]
            raise FeatureError(f"{name.text!r}: calls of {word.key} count as {kind}; write {kind}", word.offset)
        raise unknown_word(name, word, (*OPERATED, "carried", "contract", "granularity", "index", *KINDS))
