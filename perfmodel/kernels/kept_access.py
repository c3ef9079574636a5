"""Rewrites a Loopy kernel so that one of its global accesses is all that is left of its work."""

from __future__ import annotations

import warnings
from typing import Any

import islpy as isl
import loopy as lp
import numpy as np
from islpy import dim_type
from loopy.isl_helpers import make_slab
from loopy.kernel import KernelState
from loopy.kernel.data import AddressSpace
from loopy.kernel.instruction import Assignment
from loopy.symbolic import get_dependencies
from pymbolic import var
from pymbolic.primitives import Comparison

from perfmodel.basics.errors import KernelError
from perfmodel.counting.counts import AccessCount
from perfmodel.counting.loopy.expressions import index_of, subscripts, subscripts_in_branches

# Names of what is added; Loopy makes them unique in the kernel.
SUM, RESULT = "kept_sum", "kept_result"
STORE = "store_kept"


def stripped(unit: Any, access: AccessCount) -> tuple[Any, dict[str, float]]:
    """Returns a Loopy translation unit with one access of its kernel left, and the statistics that it needs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        unit = lp.preprocess_program(lp.infer_unknown_types(unit))
        return unit.with_kernel(_KeptAccess(unit, access).kernel()), {STORE: 0.0} if access.direction == "load" else {}


class _KeptAccess:
    """Rewrites a preprocessed Loopy kernel, in which reductions are loops already."""

    def __init__(self, unit: Any, access: AccessCount) -> None:
        self.unit = unit
        self.old = unit.default_entrypoint
        self.access = access
        self.array = self.old.arg_dict.get(access.variable)
        if self.array is None:
            raise KernelError(
                f"{access.variable!r} of kernel {self.old.name!r} is a temporary in global memory; make it an argument"
            )
        new_name = self.old.get_var_name_generator()
        self.sum_name, self.result_name = new_name(SUM), new_name(RESULT)
        groups, locals_ = self.old.get_grid_size_upper_bounds(unit.callables_table)
        self.grid = {new_name(f"all_l{axis}"): (f"l.{axis}", extent) for axis, extent in enumerate(locals_)}
        self.grid |= {new_name(f"all_g{axis}"): (f"g.{axis}", extent) for axis, extent in enumerate(groups)}

    def kernel(self) -> Any:
        instruction, expression = self.located()
        instructions, temporaries, results = self.rewritten(instruction, expression)
        # Also arrays that an address is read from.
        needed = get_dependencies(expression) - {self.access.variable}
        others = [a for a in self.old.args if isinstance(a, lp.ValueArg) or a.name in needed]
        domains = [self.domain(name, extent) for name, (_, extent) in self.grid.items()]
        new = self.old.copy(
            instructions=instructions,
            args=[self.kept_array(), *results, *others],
            domains=[*self.old.domains, *domains],
            temporary_variables=temporaries,
            linearization=None,
            state=KernelState.INITIAL,
        )
        # The loops nest as they did in the program that was counted, which may have left their order to Loopy.
        new = new.copy(loop_priority=frozenset({tuple(self.access.loop_strides)}))
        new = lp.tag_inames(new, {name: tag for name, (tag, _) in self.grid.items()})
        used = frozenset().union(*(i.within_inames for i in instructions))
        return lp.remove_unused_inames(new, sorted(new.all_inames() - used))

    def kept_array(self) -> Any:
        if isinstance(self.array, lp.ConstantArg):
            return self.array
        return self.array.copy(is_input=True, is_output=self.access.direction == "store")

    def located(self) -> tuple[Any, Any]:
        """Returns the instruction that makes the access, and the access's expression in it."""
        instruction = self.old.id_to_insn[self.access.instruction]
        loads = subscripts(instruction.expression)
        loads += [load for target in instruction.assignees for i in index_of(target) for load in subscripts(i)]
        chosen = loads if self.access.direction == "load" else list(instruction.assignees)
        expression = next((e for e in chosen if str(e) == self.access.text), None)
        if expression is None:
            raise self.refused("is part of a predicate")
        if expression in subscripts_in_branches(instruction.expression):
            raise self.refused("is part of an if-expression, and may be out of bounds without it")
        self.check(instruction, expression)
        return instruction, expression

    def check(self, instruction: Any, expression: Any) -> None:
        """Refuses an access that depends on values which other instructions compute."""
        if not isinstance(instruction, Assignment) or instruction.atomicity:
            raise self.refused(f"is made by {instruction.id!r}, which is no plain assignment")
        known = self.old.all_inames() | {name for name, a in self.old.arg_dict.items() if not hasattr(a, "shape")}
        domain = self.old.get_inames_domain(instruction.within_inames)
        decisions = (
            ("has an address that depends on", get_dependencies(index_of(expression)) - set(self.old.arg_dict)),
            ("runs in a loop that depends on", set(domain.get_var_names(dim_type.param))),
            ("is made or not depending on", get_dependencies(tuple(instruction.predicates))),
        )
        for what, names in decisions:
            if data := names - known:
                raise self.refused(f"{what} {', '.join(sorted(data))}")

    def refused(self, reason: str) -> KernelError:
        return KernelError(
            f"{self.access.direction} {self.access.text!r} of kernel {self.old.name!r} {reason}; keep another access"
        )

    def rewritten(self, instruction: Any, expression: Any) -> tuple[list[Any], dict[str, Any], list[Any]]:
        """Returns instructions, temporaries by name, and the array of results."""
        everywhere = {"within_inames": frozenset(self.grid), "within_inames_is_final": True}
        where = {
            "within_inames": instruction.within_inames,
            "within_inames_is_final": True,
            "predicates": instruction.predicates,
        }
        if self.access.direction == "store":
            # An instruction of all work-items keeps the launch as it was, also where the store has fewer axes.
            store = lp.Assignment(expression, 1, id=self.access.instruction, **where)
            return [store, lp.NoOpInstruction(id="launch_kept", **everywhere)], {}, []
        dtype = self.array.dtype.numpy_dtype
        if dtype.kind == "c":
            raise self.refused("is of complex numbers, which are not negative or positive")
        sum_type = _sum_type(dtype)
        value = expression if sum_type == dtype else lp.TypeCast(sum_type, expression)
        register = var(self.sum_name)
        extents = reversed(self.old.get_grid_size_upper_bounds_as_exprs(self.unit.callables_table))
        place = var(self.result_name)[tuple(map(var, reversed(self.grid)))] if self.grid else var(self.result_name)[0]
        instructions = [
            lp.Assignment(register, 0, id="start_kept", **everywhere),
            lp.Assignment(
                register, register + value, id=self.access.instruction, depends_on=frozenset({"start_kept"}), **where
            ),
            lp.Assignment(
                place,
                register,
                id=STORE,
                depends_on=frozenset({"start_kept", self.access.instruction}),
                predicates=frozenset({Comparison(register, "<", 0)}),
                **everywhere,
            ),
        ]
        shape = tuple(reversed([extent for axes in extents for extent in axes])) or (1,)
        axes = ",".join(f"N{nesting}" for nesting in reversed(range(len(shape))))
        result = lp.GlobalArg(self.result_name, sum_type, shape=shape, dim_tags=axes, is_input=False, is_output=True)
        temporary = lp.TemporaryVariable(self.sum_name, sum_type, shape=(), address_space=AddressSpace.PRIVATE)
        return instructions, {self.sum_name: temporary}, [result]

    def domain(self, name: str, extent: Any) -> Any:
        """Returns the domain 0 <= name < extent, as Loopy has domains."""
        parameters = extent.get_var_names(isl.dim_type.param)
        space = isl.Space.create_from_names(isl.DEFAULT_CONTEXT, set=[name], params=parameters)
        return make_slab(space, name, 0, extent)


def _sum_type(dtype: Any) -> Any:
    """Returns a signed type in which values of another type are summed up, so that the sum can be negative.

    It is wide enough for sums of millions of small numbers, as arrays are measured with, to stay positive.
    """
    if dtype.kind == "f":
        return dtype
    return np.dtype("int64" if dtype.itemsize >= 4 else "int32")
