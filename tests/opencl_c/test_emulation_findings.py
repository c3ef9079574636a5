"""Mistakes of kernels are found, and described."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perfmodel.basics.errors import EmulationError, KernelError
from perfmodel.opencl_c.emulation import Argument, Emulation, LocalBytes, Zeros, emulate
from perfmodel.opencl_c.lowering import lower
from perfmodel.opencl_c.reading import read


def run(body: str, parameters: str = "__global int *a", /, size: int = 64, **options: Any) -> Emulation:
    arguments: dict[str, Argument] = {"a": np.arange(64, dtype=np.int32), **options.pop("arguments", {})}
    program = lower(read(f"__kernel void k({parameters}) {{\n{body}\n}}"), "k")
    return emulate(program, size, 32, arguments, **{"groups": "all", **options})


def only(found: Emulation) -> Any:
    assert len(found.findings) == 1, [str(finding) for finding in found.findings]
    return found.findings[0]


ID = "int i = get_global_id(0), l = get_local_id(0);"


def test_a_correct_kernel_has_none() -> None:
    assert run(ID + "a[i] += 1;").findings == ()


def test_out_of_bounds_loads_give_zero() -> None:
    found = run(
        ID + "\nint x = a[i + 3]; barrier(CLK_GLOBAL_MEM_FENCE); b[i] = x;",
        "__global int *a, __global int *b",
        arguments={"b": Zeros(64)},
    )
    finding = only(found)
    assert finding.kind == "out of bounds"
    assert finding.message == "a[i + 3] reads 4 bytes at byte 256 of 'a', which has 256"
    assert (finding.group, finding.work_item, finding.count, finding.place.line) == ((1, 0, 0), (29, 0, 0), 3, 3)
    assert found.array("b").tolist() == [*range(3, 64), 0, 0, 0]


def test_out_of_bounds_stores_are_dropped() -> None:
    found = run(ID + "a[i - 1] = -i;")
    assert only(found).message == "a[i - 1] writes 4 bytes at byte -4 of 'a', which has 256"
    assert found.array("a").tolist() == [-number for number in range(1, 64)] + [63]


def test_unsigned_indices_that_wrap_around() -> None:
    found = run("uint i = get_global_id(0); int x = a[i - 1u]; barrier(1); a[i] = x;")
    assert (found.findings[0].kind, found.findings[0].count) == ("out of bounds", 1)
    assert found.array("a")[:32].tolist() == [0, *range(31)]


def test_local_and_private_arrays_have_bounds() -> None:
    found = run(
        ID
        + "__local int s[32]; int p[4], j = l > 28 ? 4 : 0; s[l] = i; p[i & 3] = 1; barrier(1);"
        + "a[i] = s[l + 1] + p[j];"
    )
    messages = [finding.message for finding in found.findings if finding.kind == "out of bounds"]
    assert messages == [
        "s[l + 1] reads 4 bytes at byte 128 of 's', which has 128",
        "p[j] reads 4 bytes at byte 16 of 'p', which has 16",
    ]


def test_null_pointers() -> None:
    finding = only(run(ID + "__global int *p = 0; a[i] = p[i];"))
    assert finding.kind == "out of bounds"


def test_misaligned_vectors() -> None:
    found = run(ID + "__global int2 *p = (__global int2 *)(a + 1); if (i < 31) p[i] = (int2)(i, -i);")
    assert only(found).kind == "misaligned"
    assert found.array("a")[1:5].tolist() == [0, 0, 1, -1]


def test_uninitialised_local_memory() -> None:
    finding = only(run(ID + "__local int s[32];\nif (l != 5) s[l] = 1;\nbarrier(1);\na[i] = s[l];"))
    assert (finding.kind, finding.work_item, finding.place.line) == ("uninitialised", (5, 0, 0), 5)


def test_vectors_in_local_memory_are_written_component_by_component() -> None:
    text = "__local int2 s[32];\ns[l].x = i;\ns[l].y = -i;\nbarrier(1);\na[i] = s[31 - l].x + s[31 - l].y;"
    assert run(ID + text).findings == ()


def test_races_in_local_memory() -> None:
    finding = only(run(ID + "__local int s[32];\ns[l] = i;\na[i] = s[31 - l];"))
    assert finding.kind == "race"
    assert "s[l] is written by work-item (0, 0, 0), and work-item (31, 0, 0) of the group reads it" in finding.message


def test_what_one_work_item_does_alone_is_no_race() -> None:
    assert run(ID + "__local int s[32]; s[l] = i; a[i] = s[l]; s[l] = 2;").findings == ()


def test_races_of_one_statement() -> None:
    finding = only(run(ID + "a[i / 2] = i;"))
    assert finding.kind == "race"
    assert "different values" in finding.message
    assert run(ID + "a[0] = 5;").findings == ()


def test_races_between_groups() -> None:
    finding = only(run(ID + "a[l] = i;"))
    assert finding.message.startswith("a[l]: one group writes what another one writes")
    assert run(ID + "atomic_add(&a[l], i);").findings == ()


def test_a_barrier_for_some() -> None:
    finding = only(run(ID + "if (i < 40) {\n barrier(1);\n}\na[i] = 1;"))
    assert (finding.kind, finding.group, finding.work_item) == ("barrier divergence", (1, 0, 0), (8, 0, 0))
    assert finding.message.startswith("8 of the group's 32 work-items meet the barrier")
    assert run(ID + "if (i < 32) barrier(1); a[i] = 1;").findings == ()


def test_a_barrier_after_early_returns() -> None:
    assert only(run(ID + "if (i == 63) return; barrier(1); a[i] = 1;")).kind == "barrier divergence"


def test_integer_division_by_zero() -> None:
    finding = only(run(ID + "\nif (i > 0) a[i] = 100 / (i - 40);"))
    assert (finding.kind, finding.place.line, finding.work_item, finding.count) == ("division by zero", 3, (8, 0, 0), 1)
    assert run(ID + "if (i != 40) a[i] = 100 / (i - 40);").findings == ()


def test_endless_loops_end() -> None:
    with pytest.raises(EmulationError, match=r"kernel.cl:2:.*took all its steps.*raise steps="):
        run(ID + "while (a[i] >= 0) a[i] = (a[i] + 1) & 7;", steps=1000)


def test_without_checks_only_bounds_are_looked_after() -> None:
    assert run(ID + "__local int s[32]; s[l] = i; a[i] = s[31 - l];", checks=False).findings == ()
    assert run(ID + "a[i + 1] = 0;", checks=False).findings[0].kind == "out of bounds"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"b": 1}, "has no parameter 'b'"),
        ({"a": np.zeros(4)}, "'a' of kernel 'k' holds float64 numbers, but points to int; give an array of int32"),
        ({"a": 5}, "is a pointer; give an array, Zeros"),
        ({"a": LocalBytes(4)}, "is a pointer"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Argument], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        run(ID, arguments=arguments)


def test_wrong_numbers() -> None:
    parameters = "__global int *a, uchar n, float4 v, __local int *s"
    good: dict[str, Any] = {"n": 1, "v": [1, 2, 3, 4], "s": LocalBytes(4)}
    assert run(ID + "a[i] = n + v.y;", parameters, arguments=good).array("a")[3] == 3
    for name, wrong, message in [
        ("n", 256, "which cannot hold 256"),
        ("n", 1.5, "give such a number"),
        ("n", "1", "give a number"),
        ("v", [1, 2], "give 4 numbers"),
        ("s", 4, "LocalBytes"),
    ]:
        with pytest.raises(KernelError, match=message):
            run(ID, parameters, arguments={**good, name: wrong})
    with pytest.raises(KernelError, match="'v' of kernel 'k' has no argument"):
        run(ID, parameters, arguments={"n": 1})


def test_wrong_sizes() -> None:
    with pytest.raises(
        KernelError, match="65 × 1 × 1 work-items in groups of 32 × 1 × 1, which is no whole number of work-groups"
    ):
        run(ID, size=65)
    with pytest.raises(KernelError, match="no group 2"):
        run(ID, groups=[2])
    with pytest.raises(KernelError, match="groups='al' is none of"):
        run(ID, groups="al")


def test_some_addresses_are_misaligned() -> None:
    found = run(
        ID + "if (i < 8) b[i] = *(__global int *)((__global char *)a + i * 5);",
        "__global int *a, __global int *b",
        arguments={"b": Zeros(8)},
    )
    finding = only(found)
    assert (finding.kind, finding.work_item, finding.count) == ("misaligned", (1, 0, 0), 6)
    data = np.arange(64, dtype=np.int32).tobytes()
    assert found.array("b").tolist() == [int.from_bytes(data[5 * i : 5 * i + 4], "little") for i in range(8)]


def test_barriers_of_one_group_after_the_other() -> None:
    body = ID + "__local int s[32]; int g = get_group_id(0), x = 0; s[l] = i; if (g == 0) barrier(1);"
    body += "if (g == 1) barrier(1); if (g < LAST) x = s[31 - l]; a[i & 63] = x;"
    groups = [0, 1, 2]
    source = "__global int *a, __global int *b"
    for last, races in ((2, 0), (3, 1)):
        found = run(
            body.replace("LAST", str(last)).replace("a[i & 63]", "b[i]"),
            source,
            96,
            groups=groups,
            arguments={"b": Zeros(96)},
        )
        assert [(finding.kind, finding.group) for finding in found.findings] == [("race", (2, 0, 0))] * races
