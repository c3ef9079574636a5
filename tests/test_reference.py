"""A device that is slowed down for a while: what was measured then is measured again, or marked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import perfmodel as pm
from perfmodel import campaign, reference
from perfmodel.device import Device
from perfmodel.measurement import Launch, Protocol, Timing
from perfmodel.reference import Reference

TRUE_SECONDS = 1e-3
MADDS = pm.Model("f_cl_wall_time", "p_madd * f_op_float32_madd")


@pytest.fixture
def kernels() -> list[pm.Kernel]:
    return pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "n:64,128,192,256"])


@pytest.fixture
def slowed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], float]], list[str]]:
    """Replaces the clock by one under a load that depends on how many kernels ran; returns the names of those run."""
    monkeypatch.setattr(reference, "_rounds", {})
    monkeypatch.setattr(reference, "_best", {})
    monkeypatch.setattr(campaign, "WAIT_SECONDS", 0.0)

    def install(load: Callable[[int], float]) -> list[str]:
        ran: list[str] = []

        def timed(launch: Launch, device: Device, protocol: Protocol) -> Timing:
            seconds = TRUE_SECONDS * load(sum(name != "perfmodel_reference" for name in ran))
            ran.append(launch.kernel_name)
            return Timing((seconds,) * 5, 1, "min")

        monkeypatch.setattr(reference, "time_launch", timed)
        monkeypatch.setattr(campaign, "time_launch", timed)
        return ran

    return install


def test_an_undisturbed_campaign_measures_each_kernel_once(
    kernels: list[pm.Kernel], cpu: Device, slowed: Callable[..., list[str]]
) -> None:
    ran = slowed(lambda count: 1.0)
    table = pm.measure(kernels, MADDS, device=cpu)
    assert ran.count("matmul_sq") == 4
    assert list(table["flags"]) == [()] * 4


def test_what_a_burst_of_load_spoilt_is_measured_again(
    kernels: list[pm.Kernel], cpu: Device, slowed: Callable[..., list[str]]
) -> None:
    """The first three kernels run at half speed, so that the best reference time is seen only after them."""
    ran = slowed(lambda count: 2.0 if count < 3 else 1.0)
    table = pm.measure(kernels, MADDS, device=cpu)
    assert list(table["f_cl_wall_time"]) == [TRUE_SECONDS] * 4
    assert list(table["flags"]) == [()] * 4
    assert 4 < ran.count("matmul_sq") <= 8


def test_load_that_does_not_end_is_marked_in_table_and_store(
    kernels: list[pm.Kernel], cpu: Device, slowed: Callable[..., list[str]]
) -> None:
    """After the second kernel the device stays slow: the others are marked, and nothing is measured for ever."""
    ran = slowed(lambda count: 1.0 if count < 3 else 3.0)
    with pm.Store() as store:
        table = pm.measure(kernels, MADDS, device=cpu, store=store)
        assert [row.flags for row in store][:2] == [(), ()]
        assert [("disturbed" in row.flags) for row in store][-1]
    assert "disturbed" in table["flags"].iloc[3]
    assert table["flags"].iloc[0] == ()
    assert ran.count("matmul_sq") <= 4 * campaign.ATTEMPTS


def test_the_reference_takes_some_milliseconds_here(cpu: Device) -> None:
    found = Reference(cpu)
    seconds = [found.seconds() for _ in range(5)]
    assert 3e-4 < found.best < 3e-2
    assert found.best <= min(seconds)
    assert found.is_disturbed(2 * found.best)
    assert not found.is_disturbed(found.best)
