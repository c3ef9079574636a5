"""Lowered kernels are counted here without running them."""

from perfmodel.opencl_c.static.counter import count_opencl

__all__ = ["count_opencl"]
