"""Finds and names the OpenCL devices of this machine, and tells what goes wrong with their drivers."""

from perfmodel.device.device import Device, devices, find_device, named
from perfmodel.device.drivers import DriverFault, driver_faults

__all__ = ["Device", "DriverFault", "devices", "driver_faults", "find_device", "named"]
