"""Writes a tunable dedispersion as OpenCL C: sums over channels of samples that are later the lower the frequency.

Samples lie along the first axis of the work-groups, measures along the second. A work-item computes some samples of
some measures, one after the other, and goes through all channels for each: nothing is shared between its sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import perfmodel as pm

MEASURES, SAMPLES, CHANNELS = 2048, 25_000, 1536
LOWEST_MHZ, APART_MHZ = 1425.0, 0.1953125
SAMPLE_S = 0.00004096
DISPERSION = 4148.808
STEP = 0.02
"""Measures lie so far apart, in parsecs per cubic centimetre."""
OBSERVED = 16
"""So many channels, evenly spread, show where the loads of all go: emulating each takes seconds."""


def shifts(channels: int = CHANNELS) -> NDArray[np.float32]:
    """Returns by how many samples each channel is late for each unit of the measure."""
    frequency = LOWEST_MHZ + APART_MHZ * np.arange(channels)
    late = DISPERSION * (frequency**-2 - frequency[-1] ** -2) / SAMPLE_S
    return np.asarray(late, np.float32)


def delays(measures: int = MEASURES, channels: int = CHANNELS) -> NDArray[np.float32]:
    """Returns by how many samples the first channel is late for each measure, which all others are for a part of."""
    return np.arange(measures, dtype=np.float32) * np.float32(STEP * shifts(channels)[0])


def source(configuration: Mapping[str, int], measures: int, samples: int, channels: int, walked: int) -> str:
    """Returns the source of a configuration.

    Its array `parts` holds the delay of each channel as a part of the first one's, from 1 to 0 nearly evenly: random
    numbers below 1 stand for them.

    Args:
        walked: so many of the channels are gone through.
    """
    bx, by, tx, ty = _shape(configuration)
    is_strided_x, is_strided_y = (configuration[f"tile_stride_{axis}"] for axis in "xy")
    late = f"{float(delays(2, channels)[1]):.9e}f"
    return f"""
__kernel __attribute__((reqd_work_group_size({bx}, {by}, 1)))
void dedispersion(__global float *out, __global const uchar *in, __global const float *parts)
{{
    const int x = get_group_id(0) * {bx * tx} + get_local_id(0) * {1 if is_strided_x else tx};
    const int y = get_group_id(1) * {by * ty} + get_local_id(1) * {1 if is_strided_y else ty};
    for (int a = 0; a < {tx}; ++a) {{
        const int sample = x + a * {bx if is_strided_x else 1};
        if (sample < {samples}) {{
            for (int b = 0; b < {ty}; ++b) {{
                const int measure = y + b * {by if is_strided_y else 1};
                if (measure < {measures}) {{
                    float sum = 0.0f;
                    for (int channel = 0; channel < {walked}; ++channel) {{
                        const uint delay = (uint)((float)measure * {late} * parts[channel]);
                        sum += in[channel * {_row(measures, samples, channels)} + sample + delay];
                    }}
                    out[measure * {samples} + sample] = sum;
                }}
            }}
        }}
    }}
}}
"""


def kernel(
    configuration: Mapping[str, int], measures: int = MEASURES, samples: int = SAMPLES, channels: int = CHANNELS
) -> pm.Kernel:
    """Returns the kernel of a configuration.

    Where its loads go is seen at some channels only.
    """
    whole = _kernel(configuration, measures, samples, channels, channels)
    walked = min(OBSERVED, channels)
    parts = shifts(channels)[:: channels // walked][:walked] / shifts(channels)[0]
    observed = _kernel(configuration, measures, samples, channels, walked).as_observed({"parts": parts})
    touched = observed.program.as_opencl().touched
    assert touched is not None
    by_array = {
        key: tuple((block, number * channels / walked) for block, number in blocks) if key[0] == "in" else blocks
        for key, blocks in touched.by_array.items()
    }
    program = whole.program.as_opencl().as_observed({}, touched=replace(touched, by_array=by_array))
    return pm.Kernel(program, whole.tags)


def _kernel(configuration: Mapping[str, int], measures: int, samples: int, channels: int, walked: int) -> pm.Kernel:
    bx, by, tx, ty = _shape(configuration)
    groups_x, groups_y = -(-samples // (bx * tx)), -(-measures // (by * ty))
    return pm.Kernel.from_opencl(
        source(configuration, measures, samples, channels, walked),
        "dedispersion",
        (groups_x * bx, groups_y * by),
        (bx, by),
        {"out": measures * samples, "in": channels * _row(measures, samples, channels), "parts": walked},
        tags={name: str(value) for name, value in configuration.items()},
    )


def _row(measures: int, samples: int, channels: int) -> int:
    """Returns the samples of a channel that the work-items of a launch read."""
    return samples + int(delays(measures, channels)[-1]) + 1


def _shape(configuration: Mapping[str, int]) -> tuple[int, int, int, int]:
    bx, by, tx, ty = (configuration[name] for name in ("block_size_x", "block_size_y", "tile_size_x", "tile_size_y"))
    return bx, by, tx, ty
