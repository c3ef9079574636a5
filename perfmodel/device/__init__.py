"""Finds and names the devices of this machine, OpenCL's and CUDA's, and tells what goes wrong with their drivers."""

from perfmodel.device.device import CUDA, OPENCL, Device, devices, find_device, named
from perfmodel.device.drivers import DriverFault, driver_faults

__all__ = ["CUDA", "OPENCL", "Device", "DriverFault", "devices", "driver_faults", "find_device", "named"]
