"""Operations that wait for their own result: `f_op_…_carried`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import loopy as lp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perfmodel as pm
from tests.counting_kernels import counted, make, tagged

ARRAYS = {"x, y, o": "n", "k, ko": {"shape": "n", "dtype": np.int32}}


def looped(update: str, variable: str = "t", out: str = "o") -> pm.Kernel:
    """Returns a kernel of a work-item for each i, whose only loop updates a variable 10 times."""
    dtype = "int32" if variable == "s" else "float32"
    program = make(
        ["{[i]: 0 <= i < n}", "{[j]: 0 <= j < 10}"],
        f"for i\n<{dtype}> {variable} = 0 {{id=start}}\nfor j\n{variable} = {update} {{id=step, dep=start}}\nend\n"
        f"{out}[i] = {variable} {{dep=step}}\nend",
        ARRAYS,
    )
    return pm.Kernel(tagged(program, i="g.0"), n=3)


def per_turn(kernel: pm.Kernel) -> dict[str, int]:
    """Returns the operations of one iteration by kind; there is one iteration each for 3 work-items and 10 times."""
    found: Counter[str] = Counter()
    for chain in kernel.counts.chains:
        assert chain.iterations.workitem(kernel.bind({})) == 3 * 10
        found.update({kind: times for kind, _, times in chain.operations})
    return dict(found)


@pytest.mark.parametrize(
    ("update", "operations"),
    [
        ("t + x[i]", {"add": 1}),
        ("x[i] - t", {"add": 1}),
        ("t + x[i]*y[i]", {"madd": 1}),
        ("x[i]*y[i] + t", {"madd": 1}),
        ("t*x[i] + y[i]", {"madd": 1}),
        ("y[i] + t*x[i]", {"madd": 1}),
        ("t + x[i] + y[i]", {"add": 2}),
        ("x[i] + y[i] + t", {"add": 1}),
        ("x[i] + t + y[i]*x[i]", {"add": 1, "madd": 1}),
        ("t*x[i]*y[i]", {"mul": 2}),
        ("x[i]*y[i]*t", {"mul": 1}),
        ("(t + x[i])*y[i]", {"add": 1, "mul": 1}),
        ("t*t", {"mul": 1}),
        ("x[i] / t", {"div": 1}),
        ("exp(t) + x[i]", {"exp": 1, "add": 1}),
        ("sqrt(t*t + 1)", {"sqrt": 1, "madd": 1}),
        ("fmax(t, x[i])", {"max": 1}),
        ("t**3 + x[i]", {"pow": 1, "add": 1}),
        ("t + exp(x[i]) + sin(y[i])", {"add": 2}),
        ("x[i] if x[i] > t else y[i]", {"compare": 1}),
        ("t + 1 if x[i] > 0 else t*y[i]*y[i]", {"mul": 2}),
        ("exp(x[i])*y[i]", {}),
        ("t", {}),
    ],
)
def test_only_what_waits_for_the_turn_before_counts(update: str, operations: dict[str, int]) -> None:
    assert per_turn(looped(update)) == operations


@pytest.mark.parametrize(
    ("update", "operations"),
    [
        ("s*5 + k[i]", {"madd": 1}),
        ("s ^ (s << 3)", {"bitwise": 1, "shift": 1}),
        ("(s // 3) % 7", {"div": 1, "mod": 1}),
        ("k[i] | s", {"bitwise": 1}),
    ],
)
def test_integers_wait_too(update: str, operations: dict[str, int]) -> None:
    assert per_turn(looped(update, "s", "ko")) == operations


@pytest.mark.parametrize(
    ("first", "only", "carried"),
    [("x[j]", "", False), ("t", "", True), ("x[j] + t", "", True), ("x[j]", ", if=x[j] > 0", True)],
)
def test_what_each_iteration_sets_anew_goes_on_to_none(first: str, only: str, carried: bool) -> None:
    program = make(
        ["{[i]: 0 <= i < n}", "{[j]: 0 <= j < 10}"],
        f"for i\n<float32> t = 0 {{id=start}}\nfor j\nt = {first} {{id=anew, dep=start{only}}}\n"
        "t = t*y[i] {id=step, dep=anew}\nend\no[i] = t {dep=step}\nend",
        ARRAYS,
    )
    kernel = pm.Kernel(tagged(program, i="g.0"), statistics={"x[j] > 0": 0.5} if only else {}, n=3)
    assert counted("f_op_float32_mul_carried", kernel) == (30 if carried else 0)


def test_unrolled_iterations_are_one_straight_line() -> None:
    program: Any = looped("t + x[i]").program
    assert not pm.Kernel(tagged(program.translation_unit, j="unr"), n=3).counts.chains


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 50))
def test_results_of_their_own_do_not_wait_for_each_other(accumulators: int, terms: int, n: int) -> None:
    """However many accumulators a work-item has, each waits for its own additions alone."""
    program = lp.make_kernel(
        ["{[i]: 0 <= i < n}", f"{{[j]: 0 <= j < {terms}}}", f"{{[a, b, c]: 0 <= a, b, c < {accumulators}}}"],
        """
        for i
            for a
                total[a] = 0 {id=start}
            end
            for j, b
                total[b] = total[b] + x[j]*y[b] {id=step, dep=start}
            end
            for c
                o[i, c] = total[c] {dep=step}
            end
        end
        """,
        [
            lp.GlobalArg("x", np.float32, shape=(terms,)),
            lp.GlobalArg("y", np.float32, shape=(accumulators,)),
            lp.GlobalArg("o", np.float32, shape=f"n, {accumulators}"),
            lp.TemporaryVariable("total", np.float32, shape=(accumulators,)),
            lp.ValueArg("n", np.int32),
        ],
        lang_version=(2018, 2),
    )
    kernel = pm.Kernel(tagged(program, i="g.0"), n=n)
    assert counted("f_op_float32_madd", kernel) == n * terms * accumulators
    assert counted("f_op_float32_madd_carried", kernel) == n * terms
    assert counted("f_op_carried", kernel) == n * terms
    assert counted("f_op_float32_mul_carried", kernel) == 0


def test_of_several_results_in_one_loop_the_longest_counts_and_loops_add_up() -> None:
    program = make(
        ["{[i]: 0 <= i < n}", "{[j]: 0 <= j < 10}", "{[k]: 0 <= k <= i}"],
        """
        for i
            <float32> a = 0 {id=a0}
            <float32> b = 1 {id=b0}
            for j
                a = a + x[i] {id=a1, dep=a0}
                b = b*x[i]*y[i] {id=b1, dep=b0}
            end
            <float32> c = a + b {id=c0, dep=a1:b1}
            for k
                c = c + x[k] {id=c1, dep=c0}
            end
            o[i] = c {dep=c1}
        end
        """,
        {"x, y, o": "n"},
    )
    kernel = pm.Kernel(tagged(program, i="g.0"), n=6)
    assert counted("f_op_float32_carried", kernel) == 6 * 10 * 2 + 21
    assert counted("f_op_float32_add_carried", kernel) == 6 * 10 + 21
    assert counted("f_op_float64_carried", kernel) == 0
    sizes = np.array([1, 6, 100])
    values = pm.feature("f_op_carried").values(kernel.counts, kernel.bind({"n": sizes}))  # type: ignore[attr-defined]
    assert values.tolist() == [n * 20 + n * (n + 1) / 2 for n in sizes]


@pytest.mark.parametrize("prefetch", ["True", "False"])
def test_well_known_kernels(prefetch: str, collection: pm.KernelCollection) -> None:
    (product,) = collection.generate_kernels(["matmul_sq", f"tiled_prefetch:{prefetch}", "n:64"])
    assert counted("f_op_float32_carried", product) == counted("f_op_float32_madd", product) == 64**3
    # Of everything that an interaction takes, only the last addition waits for the one before.
    (bodies,) = collection.generate_kernels(["nbody", f"prefetch:{prefetch}", "n:1024"])
    assert counted("f_op_float32_carried", bodies) == 1024**2
    (copy,) = collection.generate_kernels(["global_copy", "loads:2", "n:4096"])
    assert counted("f_op_carried", copy) == 0
