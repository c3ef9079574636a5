"""OpenCL C source becomes the typed syntax tree: it is preprocessed here and parsed by clang."""

from perfmodel.opencl_c.reading.reader import read

__all__ = ["read"]
