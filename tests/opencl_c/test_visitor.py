"""Walks, rewriting and dispatch, on lowered kernels and syntax trees alike."""

from __future__ import annotations

from typing import get_args

import pytest

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.lowering import lower
from perfmodel.opencl_c.reading import read
from perfmodel.opencl_c.types import INT
from perfmodel.opencl_c.visitor import Dispatch, child_fields, children, rebuilt, walk

SOURCE = """
int early(int x) { if (x > 2) return 1; return x; }
kernel void k(global int *a, int n) {
    for (int i = 0; i < n; i++) {
        if (a[i] < 0) break;
        a[i] = early(a[i] * 2) + i;
    }
    atomic_inc(a);
}
"""
ONE, TWO = low.Constant(INT, 1), low.Constant(INT, 2)


@pytest.fixture(scope="module")
def kernel() -> low.LoweredKernel:
    return lower(read(SOURCE), "k")


@pytest.mark.parametrize(
    ("node_type", "fields"),
    [
        (low.Constant, ()),
        (low.Load, ("pointer",)),
        (low.WorkItem, ("axis",)),
        (low.Atomic, ("pointer", "operands")),
        (low.Loop, ("test", "body", "step")),
        (syn.Call, ("arguments",)),
        (syn.InitializerList, ("leaves",)),
        (syn.Switch, ("value", "cases")),
    ],
)
def test_fields_of_nodes_follow_from_their_types(node_type: type, fields: tuple[str, ...]) -> None:
    assert child_fields(node_type) == fields


def test_walks_meet_every_node_once_operands_first() -> None:
    total = low.Binary(INT, "+", ONE, low.Unary(INT, "-", TWO))
    assert children(total) == [ONE, total.right]
    assert list(walk(total)) == [ONE, TWO, total.right, total]
    axis = low.WorkItem(INT, "get_work_dim", None)
    assert children(axis) == []
    braces = syn.InitializerList(INT, syn.Place("", 0, 0), ((0, value := syn.Constant(INT, syn.Place("", 0, 0), 3)),))
    assert children(braces) == [value]


def test_rebuilding_keeps_what_does_not_change() -> None:
    total = low.Binary(INT, "+", ONE, low.Unary(INT, "-", TWO))
    assert rebuilt(total, lambda part: part) is total

    def doubled(node: low.Expression) -> low.Expression:
        return low.Constant(INT, 2 * node.value) if isinstance(node, low.Constant) else rebuilt(node, doubled)

    changed = doubled(total)
    assert [part.value for part in walk(changed) if isinstance(part, low.Constant)] == [2, 4]
    assert [part.value for part in walk(total) if isinstance(part, low.Constant)] == [1, 2]


def test_rebuilding_drops_and_adds_nodes_of_lists() -> None:
    join = low.Join(INT, (ONE, TWO, ONE))
    assert rebuilt(join, lambda part: None if part is TWO else part).parts == (ONE, ONE)
    assert rebuilt(join, lambda part: [part, part] if part is TWO else part).parts == (ONE, TWO, TWO, ONE)


def test_registers_accesses_and_labels_of_a_kernel(kernel: low.LoweredKernel) -> None:
    (loop,) = (each for each in walks.statements(kernel.body) if isinstance(each, low.Loop))
    names = {register.name for register in walks.registers_set((loop,))}
    assert {"i", "x", "_go"} <= names
    assert not names & {"n", "a"}
    accesses = [
        node.access for statement in walks.simple_statements(kernel.body) for node in walks.accesses_of(statement)
    ]
    assert sorted(access.number for access in accesses) == list(range(len(kernel.accesses)))
    assert accesses[-1].direction == "atomic"
    assert walks.labels_left((loop,)) == set()
    assert walks.labels_left(loop.body) == {loop.label}


def test_an_implementation_that_is_missing_is_named_when_the_class_is_made() -> None:
    with pytest.raises((TypeError, RuntimeError)) as error:

        class Incomplete:
            visit = Dispatch[[], int](low.Statement)

            @visit.on(low.Straight, low.If, low.Scope, low.Leave)
            def found(self, statement: low.Statement) -> int:
                return 1

    causes = f"{error.value} {error.value.__cause__}"
    assert "Incomplete.visit has no implementation for Loop" in causes


def test_dispatch_takes_the_nearest_base_and_what_a_subclass_overrides() -> None:
    class Names:
        of = Dispatch[[str], str](low.Expression)

        @of.on(low.Node)
        def other(self, node: low.Expression, end: str) -> str:
            return f"other{end}"

        @of.on(low.Constant)
        def constant(self, node: low.Constant, end: str) -> str:
            return f"{node.value}{end}"

    class Louder(Names):
        def constant(self, node: low.Constant, end: str) -> str:
            return super().constant(node, end) + "!"

    total = low.Binary(INT, "+", ONE, TWO)
    assert [Names().of(each, ".") for each in (ONE, total)] == ["1.", "other."]
    assert Louder().of(ONE, ".") == "1.!"
    assert set(Names.of.methods) == {low.Node, *get_args(low.Expression)}
    with pytest.raises(TypeError, match=r"Names\.of has no implementation for Leave"):
        Names().of(low.Leave("x"), ".")
