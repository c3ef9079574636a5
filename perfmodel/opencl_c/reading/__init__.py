"""OpenCL C source to the typed syntax tree: preprocessed here, parsed by clang."""

from perfmodel.opencl_c.reading.reader import read

__all__ = ["read"]
