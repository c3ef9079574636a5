"""Lists the published spaces that kernels of ours stand for."""

from __future__ import annotations

import perfmodel as pm
from benchmarks import tuned_product
from benchmarks.published import convolution, dedispersion
from benchmarks.published.space import Configuration, Space


def _product(configuration: Configuration) -> pm.Kernel:
    constant = ("STRM", "STRN", "PRECISION")
    return tuned_product.kernel({name: value for name, value in configuration.items() if name not in constant})


def _product_idle(configuration: dict[str, int]) -> dict[str, int]:
    """The shape in which a matrix is loaded into local memory does nothing where it is not loaded there."""
    shapes = (("MDIMA", "SA", "MDIMC"), ("NDIMB", "SB", "NDIMC"))
    return configuration | {shape: configuration[own] for shape, loads, own in shapes if not configuration[loads]}


def _convolution_idle(configuration: dict[str, int]) -> dict[str, int]:
    """Padding does nothing where rows need none, nor without local memory; a read-only cache is none of OpenCL C's."""
    rows = [
        convolution.pitch(
            configuration["block_size_x"], configuration["tile_size_x"], convolution.FILTER, padded=padded
        )
        for padded in (False, True)
    ]
    is_padded = configuration["use_padding"] and configuration.get("use_shmem", 1) and rows[0] != rows[1]
    return configuration | {"read_only": 0, "use_padding": int(is_padded)}


def _is_through_local_memory_all_the_same(vendor: str, configuration: Configuration) -> bool:
    """Tells rows that repeat others: on AMD's cards use_shmem does nothing, and all go through local memory.

    On the W7800 the 808 pairs of rows that differ in nothing else differ by 0.8 % in their times, and padding of local
    memory, which rows without it do not have, makes a difference.
    """
    return vendor == "AMD" and not configuration["use_shmem"]


def _dedispersion_idle(configuration: dict[str, int]) -> dict[str, int]:
    """The stride of a work-item's elements means nothing where it has one."""
    single = {f"tile_stride_{axis}": 0 for axis in "xy" if configuration[f"tile_size_{axis}"] == 1}
    return configuration | single


_MULTIPLIED = "MWG NWG KWG MDIMC NDIMC MDIMA NDIMB KWI VWM VWN STRM STRN SA SB PRECISION"
_FILTERED = "block_size_x block_size_y tile_size_x tile_size_y use_padding read_only filter_width filter_height"
_DEDISPERSED = "block_size_x block_size_y block_size_z tile_size_x tile_size_y tile_stride_x tile_stride_y"

SPACES = {
    space.name: space
    for space in (
        Space(
            "gemm",
            frozenset(_MULTIPLIED.split()),
            _product,
            _product_idle,
        ),
        Space("tiled", frozenset(_FILTERED.split()), convolution.kernel, _convolution_idle),
        Space(
            name="optional_shared",
            parameters=frozenset(f"{_FILTERED} use_shmem use_cmem".split()),
            kernel=convolution.kernel,
            idle=_convolution_idle,
            is_other=_is_through_local_memory_all_the_same,
        ),
        Space(
            "dedispersion",
            frozenset(f"{_DEDISPERSED} loop_unroll_factor_channel".split()),
            dedispersion.kernel,
            _dedispersion_idle,
        ),
    )
}
