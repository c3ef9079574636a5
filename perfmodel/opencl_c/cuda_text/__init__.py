"""A lowered kernel is printed as CUDA C++, of which NVIDIA's compiler makes the PTX that its OpenCL would run."""

from perfmodel.opencl_c.cuda_text.kernel_text import CudaText, cuda_text

__all__ = ["CudaText", "cuda_text"]
