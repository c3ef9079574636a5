"""The random kernels: the same by seed everywhere, defined for all data, and of the kind that was published."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import perfmodel as pm
from perfmodel.basics.errors import TagError
from perfmodel.collection.kernel_generator import TOLERANCES
from perfmodel.collection.verification import small_kernels
from perfmodel.device import Device
from perfmodel.generators.random_expression import RandomExpression, bounded
from perfmodel.measuring.protocol import run_launch
from tests.covering import examples

SETS = ("realistic", "unrestricted")
# Computed once, on CPython 3.11: of the kernels' sources of seeds 1 to 200, one after the other.
SHA256 = {
    "realistic": "150d815f46049dc377270d3831b1a7ef802c322ba62d4028c7be5b4cbe11489a",
    "unrestricted": "2e0f5849ac8048bac271eb5ff5b08f9b4434e830b4eb38d6ab25c5494e06eb55",
}
PROGRAM = """
import hashlib
import sys
import perfmodel as pm
tags = ["random_expression", f"set:{sys.argv[1]}", "seed:1..200", "n:1024"]
kernels = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(tags)
print(hashlib.sha256("".join(kernel.launch().source for kernel in kernels).encode()).hexdigest())
"""
seeds = st.integers(1, 10**9)


def random_kernels(kernel_set: str, which: str, n: int = 64, group: str = "16x4") -> list[pm.Kernel]:
    collection = pm.KernelCollection([RandomExpression()])
    return collection.generate_kernels([f"set:{kernel_set}", f"seed:{which}", f"n:{n}", f"lsizes:{group}"])


def expression(kernel: pm.Kernel) -> str:
    found = re.search(r"result\[x \* WIDTH \+ y\] = (.*);", kernel.launch().source)
    assert found
    return found[1]


def patterns(kernel: pm.Kernel) -> set[str]:
    """Returns classes of what is read from global memory."""
    return {a.pattern for a in kernel.counts.accesses if a.space == "global" and a.direction == "load"}


class Rows:
    """A matrix that arrays index as C does, row by row."""

    def __init__(self, matrix: NDArray[Any], rows: Any = None) -> None:
        self.matrix, self.rows = matrix, rows

    def __getitem__(self, place: Any) -> Any:
        return Rows(self.matrix, place) if self.rows is None else self.matrix[self.rows, place]


def as_python_reads_it(kernel: pm.Kernel, arrays: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Returns the expression evaluated from its text, whose syntax C and Python share, in float64."""
    n = int(kernel.tags["n"])
    x, y = np.indices((n, n), np.uint32)
    text = re.sub(r"(\d+\.\d+)f", lambda literal: repr(float(np.float32(literal[1]))), expression(kernel))
    names = {
        "matrix": Rows(arrays["elements"].reshape(n, n).astype(float)),
        "xxx": arrays["xxx"].astype(float),
        "x": x,
        "y": y,
        "HEIGHT": n,
        "WIDTH": n,
    }
    return np.broadcast_to(eval(text, {"__builtins__": {}}, names), (n, n)).astype(float)


def inputs(kernel: pm.Kernel) -> dict[str, NDArray[Any]]:
    return dict(RandomExpression().inputs(kernel, np.random.default_rng(7)))


@pytest.mark.parametrize("kernel_set", SETS)
def test_a_seed_means_the_same_text_everywhere(kernel_set: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, kernel_set], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.strip() == SHA256[kernel_set]
    texts = "".join(kernel.launch().source for kernel in random_kernels(kernel_set, "1..200", 1024, "256x1"))
    assert hashlib.sha256(texts.encode()).hexdigest() == SHA256[kernel_set]


@pytest.mark.parametrize("kernel_set", SETS)
def test_a_thousand_seeds_are_named_by_a_range_and_differ(kernel_set: str) -> None:
    kernels = random_kernels(kernel_set, "1..1000", 1024)
    assert [kernel.tags["seed"] for kernel in kernels] == [str(seed) for seed in range(1, 1001)]
    assert len({expression(kernel) for kernel in kernels}) > 990


def test_ranges_of_numbers() -> None:
    def asked(which: str) -> list[str]:
        return [kernel.tags["seed"] for kernel in random_kernels("realistic", which)]

    assert asked("3..5,9,4..6") == ["3", "4", "5", "9", "6"]
    assert asked("7..7") == ["7"]
    for wrong, message in (
        ("5..3", "range '5..3' of tag 'seed' has no numbers"),
        ("1..100000000", "give 1 to 100000"),
        ("0..2", "tag 'seed' has no value '0'"),
        ("1..", "tag 'seed' has no value '1..'"),
    ):
        with pytest.raises(TagError, match=re.escape(message)):
            asked(wrong)


def test_sizes_may_be_ranges_and_choices_may_not() -> None:
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    found = collection.generate_kernels(["vector_add", "n:254..258", "groups_fit:False"])
    assert [kernel.sizes["n"] for kernel in found] == [254, 255, 257, 258]
    with pytest.raises(TagError, match=r"tag 'set' has no value '1\.\.2'"):
        random_kernels("1..2", "1")


@settings(deadline=None, max_examples=examples(15))
@given(st.sampled_from(SETS), seeds, st.sampled_from((16, 48)))
def test_any_seed_is_read_counted_and_stays_in_bounds(kernel_set: str, seed: int, n: int) -> None:
    (kernel,) = random_kernels(kernel_set, str(seed), n, "16x4")
    assert kernel.counts.exact
    assert patterns(kernel) <= {"continuous", "constant", "interval", "complex"}
    assert pm.emulate(kernel, inputs(kernel), groups="sample").findings == ()


@settings(deadline=None, max_examples=examples(20))
@given(st.sampled_from(SETS), seeds)
def test_values_are_those_of_the_text_and_finite(kernel_set: str, seed: int) -> None:
    (kernel,) = random_kernels(kernel_set, str(seed), 48, "16x4")
    arrays = inputs(kernel)
    with np.errstate(divide="raise", invalid="raise", over="ignore"):
        found, expected = bounded(kernel, arrays), as_python_reads_it(kernel, arrays)
    assert np.isfinite(found.values).all()
    assert np.isfinite(found.error).all()
    assert np.all(np.abs(found.values - expected) <= found.error)


@pytest.mark.parametrize("kernel_set", SETS)
def test_devices_compute_within_the_bounds_of_their_rounding(kernel_set: str, cpu: Device) -> None:
    """Also where a difference all but cancels, which the family's own checks avoid."""
    is_tight = []
    for kernel in random_kernels(kernel_set, "26..60", 32):
        arrays = inputs(kernel)
        bounds = bounded(kernel, arrays)
        found = run_launch(kernel.launch(), cpu, arrays)["result"].astype(float).reshape(bounds.values.shape)
        assert np.all(np.abs(found - bounds.values) <= bounds.error), kernel
        is_tight.append(np.median(bounds.error / np.maximum(np.abs(bounds.values), 1e-30)) < 1e-5)
    assert np.mean(is_tight) > 0.9


def test_checked_seeds_are_well_conditioned() -> None:
    """Verification allows for no more than rounding can come to, at each element."""
    for kernel in small_kernels(RandomExpression()):
        bounds = bounded(kernel, inputs(kernel))
        size = np.abs(bounds.values)
        assert np.all(bounds.error <= TOLERANCES["float32"] * np.maximum(size, 1e-3 * size.max())), kernel


def leaves(text: str) -> int:
    """Returns the number of operands of the float expression: what is left once indices are gone."""
    while (shorter := re.sub(r"\[[^\[\]]*\]", "", text)) != text:
        text = shorter
    return len(re.findall(r"[A-Za-z_]\w*|\d+\.\d+f", text))


def shares(values: Iterable[bool]) -> float:
    return float(np.mean(list(values)))


def test_realistic_kernels_are_small_and_have_no_complex_access() -> None:
    kernels = random_kernels("realistic", "1..300")
    numbers = [leaves(expression(kernel)) for kernel in kernels]
    assert min(numbers) == 3
    assert max(numbers) <= 14  # 12, x * y being one, and a literal that keeps a divisor from 0
    assert 6 <= np.mean(numbers) <= 9
    assert not any("complex" in patterns(kernel) for kernel in kernels[:60])
    assert not any(re.search(r"\[\(", expression(kernel)) for kernel in kernels)


def test_unrestricted_kernels_are_larger_and_often_have_complex_accesses() -> None:
    kernels = random_kernels("unrestricted", "1..300")
    numbers = [leaves(expression(kernel)) for kernel in kernels]
    assert min(numbers) == 3
    assert 20 <= max(numbers) <= 30
    assert 10 <= np.mean(numbers) <= 14
    assert 0.2 < shares("complex" in patterns(kernel) for kernel in kernels[:60]) < 0.9


def test_all_printed_forms_occur() -> None:
    """Each kind of operand of the three published examples, and each operation."""
    texts = {name: " ".join(expression(k) for k in random_kernels(name, "1..300")) for name in SETS}
    common = (
        *(r"matrix\[x\]\[y\]", r"matrix\[\d+ % HEIGHT\]\[\d+ % WIDTH\]", r"xxx\[x & 0x7F\]", r"xxx\[y & 0x7F\]"),
        *(r"xxx\[\d+ & 0x7F\]", r"\d+\.\d{5}f", r"\(x - y\)", r"\((y \* x|x \* y)\)", r" \+ ", r" - ", r" \* ", r" / "),
    )
    complex_forms = (
        *(r"xxx\[\(.*?\) & 0x7F\]", r"matrix\[\(.*?\) % HEIGHT\]\[\d+ % WIDTH\]"),
        r"matrix\[\([^\[]*\) % HEIGHT\]\[\([^\[]*\) % WIDTH\]",
    )
    for form in common:
        assert all(re.search(form, text) for text in texts.values()), form
    for form in complex_forms:
        assert re.search(form, texts["unrestricted"]), form
        assert not re.search(form, texts["realistic"]), form
