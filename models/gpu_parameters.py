"""Says what the GPU model's parameters stand for, and what an H200 has.

Ranges of an H200: NVIDIA's data sheet and papers, the CUDA C++ Programming Guide (operations a clock of compute
capability 9.0), latencies of an H100 (Luo et al., arXiv:2402.13499, in cycles: 40.7 to the first-level cache, 29.0 to
local memory, 263 to the second-level cache, 478.8 to memory) at clocks from 1.755 to 1.98 GHz, and what our own
microbenchmarks measured by themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from perfmodel.modelling.meaning import Meaning, Physical
from perfmodel.models.gpu_scales import SCALES
from perfmodel.models.gpu_terms import LESS_SCRATCH, SORTED, TERMS
from perfmodel.models.gpu_waits import WAITING

SHEET = "NVIDIA's H200 data sheet"
PAPER = "NVIDIA's H100 architecture paper"
SECOND_LEVEL = Physical(0, 16.7, "64 bytes a clock and compute unit, NVIDIA's A100 architecture paper, 1.98 GHz")
GUIDE = "CUDA C++ Programming Guide, {} a clock and compute unit, 1.98 GHz"
LIMITS = "CUDA C++ Programming Guide, compute capability 9.0"
JIA = "Jia et al. 2018, a V100, arXiv:1804.06826"
OURS = "measured by {}"
UNITS, CLOCK = 132, 1.98e9

STORES = "f_mem_access_global_store_granularity:subgroup"
LOADED = "f_mem_footprint_global_load_granularity:workgroup_block:32"
# How many times as many as if each access moved whole lines without conflicts: 128 bytes in a cycle, or in a line.
LOCAL_CYCLES = "f_mem_transactions_local_banks:32 * 128 / f_mem_bytes_local"
LINES, SECTORS = "f_mem_transactions_global_load_block:128", "f_mem_transactions_global_load_block:32"
LOAD_CYCLES = "f_mem_transactions_global_load_banks:32 * 128 / f_mem_bytes_global_load"
LOAD_LINES = "f_mem_transactions_global_load_block:128 * 128 / f_mem_bytes_global_load"
STORE_LINES = "f_mem_transactions_global_store_block:128 * 128 / f_mem_bytes_global_store"
# Such as follow from the counts of the model's own features: what sets of addresses have in common is counted for long.
TOUCHED = "(f_mem_footprint_global_load_brought_block:64 + f_mem_footprint_global_store_block:64)"
GAPS = f"{TOUCHED} / f_mem_bytes_global"
OFTEN = f"{LOADED} / f_mem_footprint_global_block:32"

NEIGHBOURS = "neighbouring work-items that {} neighbouring elements would help"
FEWER_LOADS = "fewer loads would help: results kept in registers, tiles in local memory, or vectors of two or four"
OWN_BYTES = "{:.3g} bytes of private arrays for each work-item, which come from there as well"


def _rate(name: str, lanes: int | None = None) -> dict[str, Any]:
    """Returns how the price of a sub-group's operation reads, beside lanes that do one a clock."""
    reads: dict[str, Any] = {"reads": {"{:.3g} T operations/s": f"32e-12 / {name}"}}
    if lanes is None:
        return reads
    rate = lanes * UNITS * CLOCK / 1e12
    return {**reads, "physical": {"H200": Physical(rate, rate, GUIDE.format(lanes))}}


def _room(words: str, name: str, most: int, unit: str = "") -> Meaning:
    """Returns what a compute unit has room for, a fact of the device."""
    return Meaning(words, reads={"{:.0f}" + unit: name}, physical={"H200": Physical(most, most, LIMITS)})


PARAMETERS: dict[str, Meaning] = {
    "p_to": Meaning(
        "bytes copied to the device",
        reads={"{:.3g} GB/s": "1e-9 / p_to"},
        physical={"H200": Physical(63, 63, "PCI Express 5.0 of 16 lanes")},
        lacks="arrays of the host that are not pinned are copied twice, once by the processor",
    ),
    "p_to_latency": Meaning("a copy to the device, however small", reads={"{:.3g} µs": "1e6 * p_to_latency"}),
    "p_from": Meaning(
        "bytes copied back",
        reads={"{:.3g} GB/s": "1e-9 / p_from"},
        physical={"H200": Physical(63, 63, "PCI Express 5.0 of 16 lanes")},
        lacks="arrays of the host that are not pinned are copied twice, once by the processor",
    ),
    "p_from_latency": Meaning("a copy back, however small", reads={"{:.3g} µs": "1e6 * p_from_latency"}),
    "p_launch": Meaning(
        "a launch",
        reads={"{:.3g} µs": "1e6 * p_launch"},
        physical={"H200": Physical(3.6, 6, OURS.format("`launch`, an empty kernel on several days"))},
    ),
    "p_group": Meaning(
        "starting a work-group",
        reads={"{:.3g} ns": "1e9 * p_group"},
        physical={"H200": Physical(0.60, 0.68, OURS.format("`launch`"))},
    ),
    "p_units": Meaning(
        "compute units", reads={"{:.0f}": "p_units"}, physical={"H200": Physical(132, 132, "the driver")}
    ),
    "p_f32": Meaning(
        "single-precision additions, products and multiply-adds, and cycles of schedulers where machine code is known",
        advice="only fewer operations would help: multiply-adds, factors taken out, results shared by work-items",
        lacks="additions and products that the counts see and a compiler contracts or leaves out",
        **_rate("p_f32", 128),
    ),
    "p_f32_minmax": Meaning(
        "minima, maxima and rounding in single precision",
        advice="fewer of them would help: clamps hoisted out of loops, or borders in a kernel of their own",
        **_rate("p_f32_minmax", 64),
    ),
    "p_f32_div": Meaning(
        "divisions, roots, exponentials and native functions",
        advice="native_divide, native_sqrt and native_exp where their digits are enough, or products with a reciprocal "
        "that is computed once, would help",
        lacks="Newton's steps around the special-function unit, which run beside it",
        **_rate("p_f32_div", 16),
    ),
    "p_f32_log": Meaning(
        "logarithms, sines and other functions of several steps",
        advice="native_log, native_sin and the like where their digits are enough, or a table, would help",
        **_rate("p_f32_log"),
    ),
    "p_f32_pow": Meaning(
        "powers",
        advice="products for whole exponents, native_powr, or exp2 of a product would help",
        **_rate("p_f32_pow"),
    ),
    "p_f64": Meaning(
        "double-precision operations",
        advice="single precision, where its digits are enough, would help",
        **_rate("p_f64", 64),
    ),
    "p_f64_div": Meaning(
        "divisions and roots in double precision",
        advice="products with reciprocals that are computed once, or single precision, would help",
        **_rate("p_f64_div"),
    ),
    "p_f64_exp": Meaning(
        "exponentials, and other short functions, in double precision",
        advice="single precision, where its digits are enough, would help",
        **_rate("p_f64_exp"),
    ),
    "p_f64_sin": Meaning(
        "sines, roots of three and other functions in double precision",
        advice="single precision, where its digits are enough, would help",
        **_rate("p_f64_sin"),
    ),
    "p_f64_log": Meaning(
        "logarithms, powers and other long functions in double precision",
        advice="single precision, where its digits are enough, or products in place of powers, would help",
        **_rate("p_f64_log"),
    ),
    "p_i32": Meaning(
        "whole-number operations, and comparisons of any 32 bits",
        advice="fewer of them would help: narrower types packed into vectors, shifts and masks combined",
        lacks="operations that a compiler joins: additions of three numbers, logic of three operands",
        **_rate("p_i32", 64),
    ),
    "p_branch": Meaning(
        words="branches that conditions decide, with their ends, where sub-groups meet again",
        figures={"{:.3g} ifs in each sub-group": "f_branch_if_granularity:subgroup * 32 / f_work_items"},
        advice="fewer decisions would help: tables in place of ladders of ifs, borders in a kernel of their own, "
        "neighbouring work-items that decide alike",
        reads={"{:.3g} instructions each": f"p_branch * {UNITS} * 4 * {CLOCK}"},
        physical={"H200": Physical(1, 4, "a branch, a mark where sub-groups meet again, and the wait there")},
        lacks="conditions that a compiler makes choices between two results of",
    ),
    "p_i32_div": Meaning(
        "whole-number divisions and remainders",
        advice="shifts and masks for powers of two, divisors that the compiler knows, or counters in their place would "
        "help",
        **_rate("p_i32_div"),
    ),
    "p_index": Meaning(
        "index arithmetic",
        advice="addresses that step from turn to turn instead of products in the innermost loop would help",
        lacks="which of it is left: most is folded into addresses, steps of pointers and registers shared by a "
        "sub-group",
        **_rate("p_index", 64),
    ),
    "p_i64": Meaning(
        "whole-number operations of 64 bits",
        advice="int and uint where numbers fit would help",
        reads={"{:.3g} T operations/s": "32e-12 / p_i64"},
        physical={"H200": Physical(8.36, 16.73, "one or two operations of 32 bits each, 64 a clock and compute unit")},
    ),
    "p_i64_mul": Meaning(
        "products of 64 bits", advice="int and uint where numbers fit would help", **_rate("p_i64_mul")
    ),
    "p_i64_div": Meaning(
        "divisions and remainders of 64 bits",
        advice="int and uint where numbers fit, or shifts and masks, would help",
        **_rate("p_i64_div"),
    ),
    "p_convert": Meaning(
        "conversions between whole numbers and floats",
        advice="conversions taken out of loops, or a counter kept as a float, would help",
        **_rate("p_convert"),
    ),
    "p_access": Meaning(
        "addresses of loads from global memory", advice=FEWER_LOADS, reads={"{:.3g} T loads/s": "32e-12 / p_access"}
    ),
    "p_store": Meaning(
        "stores to global memory",
        {"{:.3g} of them in each work-item": f"{STORES} * 32 / f_work_items"},
        "fewer stores would help: results kept in registers to the end, vectors of two or four",
        reads={"{:.3g} T stores/s": "32e-12 / p_store"},
    ),
    "p_barrier": Meaning(
        "barriers",
        {"{:.3g} in each work-item": "f_sync_barrier_local / f_work_items"},
        "fewer barriers would help: larger tiles, sums within sub-groups",
        reads={"{:.3g} T work-items/s": "1e-12 / p_barrier"},
    ),
    "p_resident_items": _room("work-items that a compute unit has places for", "p_resident_items", 2048),
    "p_resident_groups": _room("work-groups that a compute unit has places for", "p_resident_groups", 32),
    "p_registers": _room("registers of a compute unit", "p_registers", 65536),
    "p_local_bytes": _room("bytes of local memory of a compute unit", "p_local_bytes", 233472, " B"),
    "p_l1_global": Meaning(
        words="loads from global memory, and of private arrays that lie in memory, that come to the banks",
        figures={"{:.2g} times the cycles that their bytes need": LOAD_CYCLES},
        advice={NEIGHBOURS.format("load"): f"{LOAD_CYCLES} - 1.9", FEWER_LOADS: ""},
        reads={"{:.3g} TB/s": "128e-12 / p_l1_global"},
        physical={"H200": Physical(33.45, 33.45, "128 bytes a clock and compute unit, 1.98 GHz")},
    ),
    "p_l1_line": Meaning(
        "lines of 128 bytes that loads touch",
        {"{:.2g} times the lines that their bytes fill": LOAD_LINES},
        {NEIGHBOURS.format("load"): f"{LOAD_LINES} - 1.9", FEWER_LOADS: ""},
        {"{:.3g} T lines/s": "1e-12 / p_l1_line"},
    ),
    "p_l1_store": Meaning(
        words="lines of 128 bytes that stores touch, and sectors that atomics update, on their way from compute units",
        figures={"{:.2g} times the lines that their bytes fill": STORE_LINES},
        advice={NEIGHBOURS.format("store"): f"{STORE_LINES} - 1.3", "fewer or wider stores would help": ""},
        reads={"{:.3g} T lines/s": "1e-12 / p_l1_store"},
        physical={"H200": Physical(0.26, 0.26, "a line a clock and compute unit, 1.98 GHz")},
    ),
    "p_l1_local": Meaning(
        words="accesses to local memory",
        figures={"{:.2g} times the cycles that their bytes need": LOCAL_CYCLES},
        advice={
            "rows padded by one element, so that work-items meet in a bank less, would help": f"{LOCAL_CYCLES} - 1.3",
            "several results for each work-item, held in registers, so that each element is read for all of them, "
            "would help": "",
        },
        reads={"{:.3g} TB/s": "128e-12 / p_l1_local"},
        physical={"H200": Physical(33.45, 33.45, "128 bytes a clock and compute unit, 1.98 GHz")},
    ),
    "p_constant": Meaning(
        words="lookups in tables of constant memory, each place of a sub-group's by itself",
        figures={
            "{:.3g} places at once": (
                "f_mem_transactions_global_load_block:4_tag:constant "
                "/ max(f_mem_access_global_load_tag:constant_granularity:subgroup, 1)"
            )
        },
        advice="tables in local memory, or in an argument, where neighbouring work-items look at different places, "
        "would help",
        reads={"{:.3g} cycles": f"p_constant * {UNITS} * {CLOCK}"},
        physical={"H200": Physical(2, 2, OURS.format("`constant_lookups`, 1.98 GHz"))},
    ),
    "p_constant_line": Meaning(
        words="lines of 64 bytes of tables in constant memory that its first cache has lost",
        figures={"{:.3g} kB of tables": "1e-3 * f_mem_tables"},
        advice="tables in local memory, smaller ones, or one of which the others follow, would help",
        reads={"{:.3g} cycles": f"p_constant_line * {UNITS} * {CLOCK}"},
    ),
    "p_near_constant": Meaning(
        "tables that the first cache of constant memory keeps",
        reads={"{:.3g} kB": "1e-3 * p_near_constant"},
        physical={"H200": Physical(2.05, 2.05, f"2 KB of lines of 64 bytes, {JIA}")},
    ),
    "p_image": Meaning(
        words="pixels that texture units read for a sub-group",
        figures={"{:.3g} reads in each work-item": "f_mem_access_global_load_tag:image / f_work_items"},
        advice="tiles of pixels in local memory, or buffers in place of images where no filter is needed, would help",
        reads={"{:.3g} cycles a sub-group": f"p_image * {UNITS} * {CLOCK}"},
        physical={"H200": Physical(8, 8, f"four texture units a compute unit, {PAPER}")},
    ),
    "p_pixel": Meaning(
        words="bytes of the pixels that texture units read",
        figures={"{:.3g} bytes a pixel": "f_mem_bytes_global_load_tag:image / f_mem_access_global_load_tag:image"},
        advice="images of fewer channels, or of narrower numbers, would help",
        reads={"{:.3g} TB/s": "1e-12 / p_pixel"},
        physical={"H200": Physical(0, 33.45, "the first-level cache's 128 bytes a clock and compute unit, 1.98 GHz")},
    ),
    "p_near_scratch": Meaning(
        "private arrays of which a first-level cache keeps one half",
        reads={"{:.3g} kB": "1e-3 * p_near_scratch"},
        physical={"H200": Physical(200, 262, f"256 KB a compute unit, {PAPER}, of which local memory takes some")},
        lacks="sectors of rows that are still to come, which a cache keeps no better than those that are done with",
    ),
    "p_near_loaded": Meaning(
        "loaded data of which a first-level cache keeps one half for the next pass",
        reads={"{:.3g} kB": "1e-3 * p_near_loaded"},
        physical={"H200": Physical(200, 262, f"256 KB a compute unit, {PAPER}, of which local memory takes some")},
    ),
    "p_contend": Meaning(
        "an update of a sector that another waits for",
        reads={"{:.3g} ns": "1e9 * p_contend"},
        physical={"H200": Physical(0.8, 0.8, OURS.format("`atomic_update`"))},
    ),
    "p_l2_scratch": Meaning(
        words="sectors of private arrays that stores write through to the second-level cache",
        figures={"{:.3g} bytes for each work-item": "f_mem_scratch / f_work_items"},
        advice=LESS_SCRATCH,
        reads={"{:.3g} TB/s": "1e-12 / p_l2_scratch"},
        physical={"H200": SECOND_LEVEL},
    ),
    "p_l2_atomic": Meaning(
        "sectors that atomics update in the second-level cache, once for each that meet at one place",
        {"{:.3g} of them for each 32 work-items": "f_mem_transactions_global_atomic_passes:32 * 32 / f_work_items"},
        "results combined in local memory or sub-groups first, one atomic for all, would help",
        {"{:.3g} G sectors/s": "1e-9 / p_l2_atomic"},
    ),
    "p_l2_load": Meaning(
        words="what work-groups load from the second-level cache, each for itself",
        figures={
            "{:si}B": LOADED,
            "{:.3g} times all data that there are": f"{OFTEN} / step({OFTEN} - 1.5)",
            OWN_BYTES: (f"f_mem_scratch / f_work_items / step(spilled - {LOADED})"),
        },
        advice={
            LESS_SCRATCH: f"spilled - {LOADED}",
            "work-groups that share more of what they load would help: larger or squarer tiles": (f"{OFTEN} - 1.5"),
            "fewer bytes would help: narrower types, kernels joined so that data are loaded once": "",
        },
        reads={"{:.3g} TB/s": "1e-12 / p_l2_load"},
        physical={"H200": SECOND_LEVEL},
        lacks="loads of small arrays that first-level caches keep from group to group are counted as if they came "
        "each time",
    ),
    "p_l2_single": Meaning(
        "sectors that irregular loads take from the second-level cache one by one, more than those of whole lines",
        {"{:.2g} lines of 128 bytes for each four sectors": f"4 * {LINES} / {SECTORS}"},
        "neighbouring work-items that load neighbouring elements, or places sorted so that they are near, would help",
        {"{:.3g} TB/s of single sectors": "1e-12 / (p_l2_load + 0.75 * p_l2_single)"},
    ),
    "p_l2_line": Meaning(
        words="lines of 128 bytes that stores touch in the second-level cache",
        figures={"{:.2g} times the lines that their bytes fill": STORE_LINES},
        advice={
            f"{NEIGHBOURS.format('store')}, as through a tile in local memory": f"{STORE_LINES} - 1.3",
            "fewer stores would help: narrower types, results kept in registers to the end": "",
        },
        reads={"{:.3g} TB/s": "128e-12 / p_l2_line"},
        physical={"H200": SECOND_LEVEL},
    ),
    "p_l2_partial": Meaning(
        "bytes of sectors that stores fill in part only",
        {
            "{:si}B that nobody stores to": "max(f_mem_footprint_global_store_block:32 "
            "- f_mem_footprint_global_store_block:4, 0)"
        },
        "stores that fill whole sectors of 32 bytes would help: elements side by side, arrays of one component",
        {"{:.3g} TB/s": "1e-12 / p_l2_partial"},
    ),
    "p_cache": Meaning(
        "data of which the last-level cache keeps one half",
        reads={"{:.3g} MB": "1e-6 * p_cache"},
        physical={"H200": Physical(50, 50, PAPER)},
        lacks="the cache's two halves, each of which keeps copies of what the other one holds",
    ),
    "p_scatter": Meaning(
        "bytes of single sectors from memory",
        figures={OWN_BYTES: "f_mem_scratch / f_work_items / step(beyond * spilled - jumped)"},
        advice={LESS_SCRATCH: "beyond * spilled - jumped", SORTED: ""},
        reads={"{:.3g} TB/s": "1e-12 / p_scatter"},
        physical={"H200": Physical(0, 2.4, f"half of 4.8 TB/s ({SHEET}): memory brings 64 bytes for 32")},
    ),
    "p_scatter_store": Meaning(
        "bytes of single sectors that scattered stores read and write again",
        figures={OWN_BYTES: "f_mem_scratch / f_work_items / step(beyond * written - strewn)"},
        advice={LESS_SCRATCH: "beyond * written - strewn", SORTED: ""},
        reads={"{:.3g} TB/s": "1e-12 / p_scatter_store"},
        physical={"H200": Physical(0, 1.2, f"a quarter of 4.8 TB/s ({SHEET}): 64 bytes for 32 come and go")},
    ),
    "p_dram": Meaning(
        words="bytes that memory brings or takes",
        figures={
            "{:si}B, each once in each direction": TOUCHED,
            "{:.3g} % of them missed by the last-level cache": "100 * missed",
        },
        advice={
            "data without gaps would help: an array for each component, elements side by side": f"{GAPS} - 1.3",
            "fewer bytes would help: narrower types, kernels joined so that data are loaded once, parts that stay "
            "within the last-level cache": "",
        },
        reads={"{:.3g} TB/s": "1e-12 / p_dram"},
        physical={"H200": Physical(4.2, 4.8, f"{SHEET}; `global_copy` reaches 4.2")},
        lacks="what the last-level cache keeps from one launch to the next, of data larger than itself",
    ),
    "p_mma": Meaning(
        words="multiplications of halves on tensor cores",
        figures={"{:si} in each work-item": "f_op_float16_mma / f_work_items"},
        advice="larger tiles for each sub-group, or narrower types, would help",
        reads={"{:.3g} TFLOP/s": "2e-12 / p_mma"},
        physical={"H200": Physical(944, 989, f"{SHEET}: 989; 945 measured by benchmarks.triton_kernels")},
    ),
    "p_moved": Meaning(
        "the part of the words that wait where a compiler moves sums, of those that its sums load",
        reads={"{:.3g}": "p_moved"},
    ),
    "p_apart": Meaning(
        "how well the first-level cache and local memory overlap: 1 where one unit is both",
        reads={"p = {:.3g}": "p_apart"},
    ),
    "p_overlap": Meaning("how well caches and memory overlap", reads={"p = {:.3g}": "p_overlap"}),
    "p_chip": Meaning("how well instructions overlap with caches and memory", reads={"p = {:.3g}": "p_chip"}),
    "p_hide": Meaning("how well waits hide behind all else", reads={"p = {:.3g}": "p_hide"}),
}

MEANINGS: dict[str, Meaning] = {
    **TERMS,
    **{name: replace(meaning, scales=SCALES.get(name, "")) for name, meaning in (PARAMETERS | WAITING).items()},
}
