"""Writes a tunable dedispersion as OpenCL C: sums over channels of samples that are later the lower the frequency.

A work-item computes some measures and samples in registers, and goes through all channels. Measures lie along the first
axis of the work-groups, samples along the second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import perfmodel as pm

MEASURES, SAMPLES, CHANNELS = 2048, 25_000, 1536
LOWEST_MHZ, APART_MHZ = 1425.0, 0.1953125
SAMPLE_S = 0.00004096
DISPERSION = 4148.808
OBSERVED = 16
"""So many channels, evenly spread, show where the loads of all go: emulating each takes minutes."""


def shifts(channels: int = CHANNELS) -> NDArray[np.float32]:
    """Returns by how many samples each channel is late for each unit of the measure."""
    frequency = LOWEST_MHZ + APART_MHZ * np.arange(channels)
    late = DISPERSION * (frequency**-2 - frequency[-1] ** -2) / SAMPLE_S
    return np.asarray(late, np.float32)


def source(
    configuration: Mapping[str, int],
    measures: int = MEASURES,
    samples: int = SAMPLES,
    late: Sequence[float] | NDArray[np.float32] | None = None,
) -> str:
    """Returns the source of a configuration; `late` are the shifts of its channels."""
    bx, by, tx, ty = _shape(configuration)
    apart_x = bx if configuration["tile_stride_x"] else 1
    apart_y = by if configuration["tile_stride_y"] else 1
    row = _row(configuration, measures, samples)
    table = [float(shift) for shift in (shifts() if late is None else late)]
    pixels = [(a, b) for a in range(tx) for b in range(ty)]
    lines = [
        f"__constant float shifts[{len(table)}] = {{{', '.join(f'{shift:.9e}f' for shift in table)}}};",
        f"__kernel __attribute__((reqd_work_group_size({bx}, {by}, 1)))",
        "void dedispersion(__global float *restrict out, __global const uchar *restrict in)",
        "{",
        f"const int measure = get_group_id(0) * {bx * tx} + get_local_id(0){'' if apart_x == bx else f' * {tx}'};",
        f"const int sample = get_group_id(1) * {by * ty} + get_local_id(1){'' if apart_y == by else f' * {ty}'};",
        f"float {', '.join(f'sum_{a}_{b} = 0.0f' for a, b in pixels)};",
        f"for (int channel = 0; channel < {len(table)}; ++channel) {{",
        "const float shift = shifts[channel];",
    ]
    for a in range(tx):
        lines.append(f"const int late_{a} = (int)((float)(measure + {a * apart_x}) * shift);")
        places = [f"channel * {row} + sample + {b * apart_y} + late_{a}" for b in range(ty)]
        lines += [f"sum_{a}_{b} += in[{place}];" for b, place in enumerate(places)]
    lines.append("}")
    for a, b in pixels:
        conditions = [
            f"{name} + {further} < {count}"
            for name, further, count, tile in (
                ("measure", a * apart_x, measures, bx * tx),
                ("sample", b * apart_y, samples, by * ty),
            )
            if count % tile
        ]
        inside = f"if ({' && '.join(conditions)}) " if conditions else ""
        place = f"(measure + {a * apart_x}) * {samples} + sample + {b * apart_y}"
        lines.append(f"{inside}out[{place}] = sum_{a}_{b};")
    return "\n".join([*lines, "}"])


def kernel(
    configuration: Mapping[str, int], measures: int = MEASURES, samples: int = SAMPLES, channels: int = CHANNELS
) -> pm.Kernel:
    """Returns the kernel of a configuration; a channel has samples to spare, so that only stores are guarded.

    Where its loads go is seen at some channels only.
    """
    late = shifts(channels)
    whole = _kernel(configuration, measures, samples, late)
    some = late[:: max(1, channels // OBSERVED)]
    touched = _kernel(configuration, measures, samples, some).as_observed().program.as_opencl().touched
    assert touched is not None
    by_array = {
        key: tuple((block, number * channels / len(some)) for block, number in blocks) if key[0] == "in" else blocks
        for key, blocks in touched.by_array.items()
    }
    program = whole.program.as_opencl().as_observed({}, touched=replace(touched, by_array=by_array))
    return pm.Kernel(program)


def _kernel(configuration: Mapping[str, int], measures: int, samples: int, late: NDArray[np.float32]) -> pm.Kernel:
    bx, by, tx, ty = _shape(configuration)
    groups_x, groups_y = -(-measures // (bx * tx)), -(-samples // (by * ty))
    return pm.Kernel.from_opencl(
        source(configuration, measures, samples, late),
        "dedispersion",
        (groups_x * bx, groups_y * by),
        (bx, by),
        {"out": measures * samples, "in": len(late) * _row(configuration, measures, samples)},
    )


def _row(configuration: Mapping[str, int], measures: int, samples: int) -> int:
    """Returns the samples of a channel that the work-items of a launch read."""
    bx, by, tx, ty = _shape(configuration)
    whole_x, whole_y = (-(-count // tile) * tile for count, tile in ((measures, bx * tx), (samples, by * ty)))
    return int(whole_y + whole_x * shifts().max()) + 1


def _shape(configuration: Mapping[str, int]) -> tuple[int, int, int, int]:
    bx, by, tx, ty = (configuration[name] for name in ("block_size_x", "block_size_y", "tile_size_x", "tile_size_y"))
    return bx, by, tx, ty
