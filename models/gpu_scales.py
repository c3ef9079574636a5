"""Says what each price of the GPU model is proportional to from device to device, over `perfmodel.device.facts`."""

from __future__ import annotations

# What prices scale with from device to device: seconds that a lane, or a byte of a cache, takes on all units together.
CLOCKS = "1 / f_device_clock"
BYTES_OF_L2 = "1 / (f_device_units * f_device_clock * f_device_l2_bandwidth)"
ISSUED = "1 / (f_device_units * f_device_clock * f_device_issue_lanes)"
F32 = "1 / (f_device_units * f_device_clock * min(f_device_f32_lanes, f_device_issue_lanes))"
I32 = "1 / (f_device_units * f_device_clock * min(f_device_i32_lanes, f_device_issue_lanes))"
CONVERTED = "(1 / f_device_convert_lanes + 2.4 / f_device_issue_lanes) / (f_device_units * f_device_clock)"
"""Conversions cost less than in proportion to the lanes for them, which are a pipe of their own where they are few:
others issue beside, while prices of what is counted by the source add up. The number was chosen by the times of a
dedispersion on an A4000 (docs/devices.md)."""
SCALES: dict[str, str] = {
    "p_launch": "f_device_launch",
    "p_group": "1 / (f_device_units * f_device_clock)",
    "p_units": "f_device_units",
    "p_resident_items": "f_device_resident_items",
    "p_resident_groups": "f_device_resident_groups",
    "p_registers": "f_device_registers",
    "p_local_bytes": "f_device_local_bytes",
    "p_f32": F32,
    "p_f32_minmax": I32,
    "p_i32": I32,
    "p_f32_div": "1 / (f_device_units * f_device_clock * f_device_special_lanes)",
    "p_f32_log": "1 / (f_device_units * f_device_clock * f_device_special_lanes)",
    "p_f32_pow": F32,
    "p_f64": "1 / (f_device_units * f_device_clock * f_device_f64_lanes)",
    "p_f64_div": "1 / (f_device_units * f_device_clock * f_device_f64_lanes)",
    "p_f64_exp": "1 / (f_device_units * f_device_clock * f_device_f64_lanes)",
    "p_f64_sin": "1 / (f_device_units * f_device_clock * f_device_f64_lanes)",
    "p_f64_log": "1 / (f_device_units * f_device_clock * f_device_f64_lanes)",
    "p_i32_div": I32,
    "p_i64": I32,
    "p_i64_mul": I32,
    "p_i64_div": I32,
    "p_index": I32,
    "p_convert": CONVERTED,
    "p_branch": ISSUED,
    "p_access": ISSUED,
    "p_store": ISSUED,
    "p_barrier": ISSUED,
    "p_mma": "1 / (f_device_units * f_device_clock)",
    "p_fence": "1 / (f_device_units * f_device_clock)",
    "p_l1_global": "1 / (f_device_units * f_device_clock * f_device_l1_bandwidth)",
    "p_l1_line": "1 / (f_device_units * f_device_clock * f_device_lookups)",
    "p_l1_store": "1 / (f_device_units * f_device_clock * f_device_lookups)",
    "p_l1_local": "1 / (f_device_units * f_device_clock * f_device_local_bandwidth)",
    "p_moved": "f_device_moved_steps ** 0",  # the same anywhere, but as unsure as how compilers write loops out
    "p_apart": "f_device_memory_units ** 2",
    "p_constant": "1 / (f_device_units * f_device_clock)",
    "p_constant_line": "1 / (f_device_units * f_device_clock)",
    "p_image": "1 / (f_device_units * f_device_clock)",
    "p_pixel": "1 / (f_device_units * f_device_clock)",
    "p_near_scratch": "f_device_l1_bytes",
    "p_near_loaded": "f_device_loaded_bytes",
    "p_contend": CLOCKS,
    "p_l2_scratch": BYTES_OF_L2,
    "p_l2_atomic": BYTES_OF_L2,
    "p_l2_load": BYTES_OF_L2,
    "p_l2_single": BYTES_OF_L2,
    "p_l2_line": BYTES_OF_L2,
    "p_l2_partial": BYTES_OF_L2,
    "p_phase": "f_device_dram_latency / f_device_clock",
    "p_wave": "f_device_dram_latency / f_device_clock",
    "p_cache": "f_device_l2_bytes",
    "p_scatter": "1 / f_device_dram_bandwidth",
    "p_scatter_store": "1 / f_device_dram_bandwidth",
    "p_dram": "1 / f_device_dram_bandwidth",
    "p_wait_scratch": "f_device_l1_latency / f_device_clock",
    "p_wait_near": "f_device_l1_latency / f_device_clock",
    "p_wait_fence": "f_device_l2_latency / f_device_clock",
    "p_wait_load": "f_device_l2_latency / f_device_clock",
    "p_wait_dram": "f_device_dram_latency / f_device_clock",
    "p_wait_local": "f_device_local_latency / f_device_clock",
    "p_wait_op": "f_device_op_latency / f_device_clock",
    "p_wait_double": "f_device_op_latency / f_device_clock",
    "p_wait_slow": "f_device_op_latency / f_device_clock",
}
