"""Asks a driver for the step of its device's clock, and for the device's PCI address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perfmodel.device import Device
from perfmodel.device.drivers import opencl
from perfmodel.measuring.doctor.gpu_state import Address


@dataclass(frozen=True)
class DriverClaims:
    """Seconds of the profiling clock's step, and the PCI address; None where the driver does not tell."""

    step_s: float | None
    address: Address | None


def driver_claims(device: Device) -> DriverClaims:
    """Asks a device's driver for the step of its clock and its PCI address.

    Raises:
        DeviceError: the device is not on this machine, or its driver refuses.
    """
    raw = device.session().raw
    step = _asked(raw, "profiling_timer_resolution")
    domain, bus, slot = (_asked(raw, f"pci_{part}_nv") for part in ("domain_id", "bus_id", "slot_id"))
    address = None if bus is None or slot is None else (domain or 0, bus, slot)
    return DriverClaims(None if step is None else step * 1e-9, address)


def _asked(raw: Any, attribute: str) -> int | None:
    cl = opencl()
    try:
        return int(getattr(raw, attribute))
    except (AttributeError, cl.Error):
        return None
