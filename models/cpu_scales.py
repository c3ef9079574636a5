"""Says what each price of the processor model is proportional to from one to another, over `perfmodel.device.facts`.

Prices are seconds of all cores together: of a vector of work-items, of a lane, or of a byte.

AVX-512, whose vectors have 16 lanes, has registers for masks, and instructions that store lanes apart. AVX2 and NEON
have neither, so that masks are vectors among the other values, for which half as many registers are there. How much
longer all this takes is what the families of the measurement set took on a Zen 3, beside what a Xeon's calibration
says of it.

Machine code is counted in whole instructions, however wide: their prices (``p_core_…``) scale with the instructions
that a unit takes in a clock, where a fact tells, of vectors that are as wide as the processor's. Divisions, gathers and
functions are counted in cycles for vectors of eight lanes, more for wider ones.
"""

from __future__ import annotations

CORES = "f_device_units * f_device_clock"
CLOCKS = f"1 / ({CORES})"
F32 = f"f_device_subgroup / ({CORES} * f_device_f32_lanes)"
DIVIDED = f"f_device_subgroup / ({CORES} * f_device_divide_lanes)"
LATENCY = f"f_device_op_latency / ({CORES})"
ISSUED = f"1 / ({CORES} * f_device_issue)"


def _without_masks(times: float) -> str:
    """Returns how many times as long it takes where masks are vectors as where they have registers of their own."""
    return f"(1 + {times - 1:g} * (16 / min(max(f_device_subgroup, 8), 16) - 1))"


SCALES: dict[str, str] = {
    "p_launch": "f_device_launch",
    "p_wake": "f_device_wake",
    "p_group": ISSUED,
    "p_start": ISSUED,
    "p_units": "f_device_units",
    # Work-items by themselves are done as fast on all wide cores, beside vectors of which some do two in a clock.
    "p_left": "f_device_f32_lanes / (f_device_subgroup * min(f_device_issue, 4))",
    "p_f32": F32,
    "p_f32_minmax": F32,
    "p_f32_exp": F32,
    "p_f32_log": F32,
    "p_f32_sin": F32,
    "p_f32_pow": F32,
    "p_f64": F32,
    "p_f64_exp": F32,
    "p_i32": f"f_device_subgroup / ({CORES} * f_device_i32_lanes)",
    "p_index": f"{ISSUED} * {_without_masks(2.5)}",
    "p_f32_div": DIVIDED,
    "p_f32_sqrt": DIVIDED,
    "p_f64_div": DIVIDED,
    "p_f64_sqrt": DIVIDED,
    "p_i32_div": DIVIDED,
    "p_gather": f"1 / ({CORES} * f_device_gather_lanes)",
    "p_scatter": f"{CLOCKS} * {_without_masks(1.6)}",
    "p_narrow": CLOCKS,
    "p_mask": f"{ISSUED} * {_without_masks(6.7)}",
    "p_turn": f"{CLOCKS} * {_without_masks(1.8)}",
    "p_branched": CLOCKS,
    "p_apart": f"f_device_dram_latency / ({CORES})",
    "p_barrier": f"{_without_masks(6.6)} / ({CORES} * f_device_store_bandwidth)",
    "p_uniform": CLOCKS,
    "p_load": f"f_device_subgroup / ({CORES} * f_device_l1_bandwidth)",
    "p_store": f"f_device_subgroup / ({CORES} * f_device_store_bandwidth)",
    "p_wait": LATENCY,
    "p_wait_whole": CLOCKS,
    "p_wait_div": LATENCY,
    "p_wait_function": LATENCY,
    "p_second": f"1 / ({CORES} * f_device_l2_bandwidth)",
    "p_last": f"f_device_l3_latency / ({CORES})",
    "p_memory": "1 / min(f_device_dram_bandwidth, f_device_units * f_device_core_bandwidth)",
    "p_store_second": f"f_device_l2_latency / ({CORES})",
    "p_store_memory": f"f_device_dram_latency / ({CORES})",
    "p_page": CLOCKS,
    "p_jump": f"f_device_dram_latency / ({CORES})",
    "p_atomic": CLOCKS,
    "p_pixel": CLOCKS,
    "p_core_slots": ISSUED,
    "p_core_floats": F32,
    "p_core_loads": f"f_device_subgroup / ({CORES} * f_device_l1_bandwidth)",
    "p_core_stores": f"f_device_subgroup / ({CORES} * f_device_store_bandwidth)",
    "p_core_shuffles": f"f_device_subgroup / ({CORES} * f_device_i32_lanes)",
    "p_core_transfers": CLOCKS,
    "p_core_divides": f"1 / ({CORES} * f_device_divide_lanes)",
    "p_core_products": CLOCKS,
    "p_core_waits": CLOCKS,
    "p_core_gathers": f"1 / ({CORES} * f_device_gather_lanes)",
    "p_core_masked": CLOCKS,
    "p_core_atomics": f"f_device_atomic_latency / ({CORES})",
    "p_core_shared": "1 / f_device_clock",
    "p_core_guesses": CLOCKS,
    "p_core_functions": ISSUED,
    "p_core_calls": CLOCKS,
}
