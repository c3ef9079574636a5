"""The clock of this machine's cores is found out by how long a chain of products takes."""

import mmap
import platform
import sys

import pytest

from perfmodel.device import clock
from perfmodel.device.cpuinfo import DESCRIPTION
from perfmodel.device.processor_here import facts_here

here_only = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="code is made for x86-64 alone"
)


@here_only
def test_a_core_s_clock_is_one_that_processors_have() -> None:
    assert 5e8 < clock.clock_here.__wrapped__() < 8e9


@here_only
def test_the_code_is_a_loop_over_a_chain_of_products() -> None:
    capstone = pytest.importorskip("capstone")
    code = list(capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64).disasm(clock.CODE, 0))
    told = [f"{each.mnemonic} {each.op_str}".strip() for each in code]
    assert told == ["imul rax, rax"] * clock.PRODUCTS + ["dec rdi", "jne 0", "ret"]
    assert sum(each.size for each in code) == len(clock.CODE)


@here_only
def test_a_process_that_may_make_no_code_is_told_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError("no memory may be executed")

    monkeypatch.setattr(mmap, "mmap", refused)
    assert clock.clock_here.__wrapped__() == 0


@here_only
def test_this_machine_s_clock_is_no_guess() -> None:
    here = facts_here(DESCRIPTION)
    if here is None:
        pytest.skip("the system does not tell the architecture")
    assert "clock" not in here.guessed()
