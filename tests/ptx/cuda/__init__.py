"""CUDA kernels with launches, data, and what numpy says that they compute, by topic."""

from tests.ptx.cuda import (
    algorithms,
    arguments,
    control_flow,
    elementwise,
    headers,
    images_and_graphs,
    language,
    sums_and_matrices,
    warps,
)
from tests.ptx.cuda.case import CASES

__all__ = [
    "CASES",
    "algorithms",
    "arguments",
    "control_flow",
    "elementwise",
    "headers",
    "images_and_graphs",
    "language",
    "sums_and_matrices",
    "warps",
]
