"""Lowered kernels are counted here without running them: see `counter.count_opencl`."""
