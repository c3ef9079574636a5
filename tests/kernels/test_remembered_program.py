"""Programs of generators that an earlier run kept are those that Loopy makes, without Loopy."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator

import pytest

import perfmodel as pm
from perfmodel.basics.errors import KernelError
from perfmodel.cli.command_line import main
from perfmodel.collection import kernel_generator
from perfmodel.kernels import remembered_program
from perfmodel.kernels.loopy_program import LoopyProgram
from perfmodel.kernels.remembered_program import RememberedProgram, remembering

FILTERS = ("matmul_sq n:96", "finite_difference n:160", "floyd_warshall", "triangular n:256", "dot_product")


def chosen(tags: str) -> pm.Kernel:
    """Returns the first kernel of a selection, whose program was not made before in this process."""
    kernel_generator._open.cache_clear()
    return pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(tags.split())[0]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leaves no remembered program to other tests; fuzzers, which are imported beside, switch the cache off."""
    monkeypatch.delenv("PERFMODEL_NO_CACHE", raising=False)
    yield
    kernel_generator._open.cache_clear()


def both(tags: str) -> tuple[pm.Kernel, pm.Kernel]:
    """Returns a kernel as it is made, and as it is remembered."""
    with remembering():
        chosen(tags)
        kept = chosen(tags)
    assert isinstance(kept.program, RememberedProgram)
    made = chosen(tags)
    assert type(made.program) is LoopyProgram
    return made, kept


@pytest.mark.parametrize("tags", FILTERS)
def test_it_is_the_same_program(tags: str) -> None:
    made, kept = both(tags)
    assert kept == made
    assert repr(kept) == repr(made)
    assert kept.as_opencl() == made.as_opencl()
    assert made.counts_for(32) == kept.counts_for(32)
    assert made.as_compiled().counts_for(32) == kept.as_compiled().counts_for(32)
    assert "translation_unit" not in vars(kept.program)
    assert kept.launch() == made.launch()
    assert pickle.loads(pickle.dumps(kept)) == made


@pytest.mark.parametrize("sizes", [{"n": -16}, {"n": 0}, {"n": 97}])
def test_it_refuses_the_same_sizes_in_the_same_words(sizes: dict[str, int]) -> None:
    said = []
    for kernel in both("matmul_sq n:96"):
        with pytest.raises(KernelError) as raised:
            kernel.bind(sizes)
        said.append(str(raised.value))
    assert said[0] == said[1]


def test_programs_of_other_modules_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered_program, "CATALOGUE", "elsewhere.")
    with remembering():
        assert all(type(chosen("matmul_sq n:96").program) is LoopyProgram for _ in range(2))


def test_a_prediction_that_was_made_before_imports_no_loopy(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["predict", "--device", "h200", "matmul_sq", "n=352"]
    kernel_generator._open.cache_clear()
    assert main(arguments) == 0
    program = (
        "import sys; from perfmodel.cli.command_line import main\n"
        f"main({arguments})\nassert not {{'islpy', 'loopy.kernel', 'pymbolic.primitives'}} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == capsys.readouterr().out
