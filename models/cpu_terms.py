"""Says what the processor model's terms and parameters stand for, and what to change where one limits.

Ranges are of two cores of an Intel Xeon with AVX-512 and AMX, at clocks from 2.6 to 4.2 GHz: Intel's Optimization
Reference Manual, Golden Cove microarchitecture.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from perfmodel.modelling.meaning import Meaning, Physical
from perfmodel.models.cpu_scales import SCALES
from perfmodel.x86.units import UNITS

GUIDE = "Intel's Optimization Reference Manual, Golden Cove"
LOW, HIGH, CORES = 2.6, 4.2, 2

NEIGHBOURS = (
    "work-items side by side along the first axis that {} elements side by side would help, by indices of type size_t, "
    "as an int might wrap around between them"
)
FEWER = "fewer loads would help: results kept in registers, several results for each work-item"
SMALLER = "smaller tiles, or loops arranged so that data are used again sooner, would help"
PADDED = "rows padded by a line of 64 bytes, so that their pitch is no power of two, would help"


def _price(words: str, name: str, advice: str = "", per_clock: float | None = None, lacks: str = "") -> Meaning:
    """Returns how the price of a vector's operation reads, beside what two cores do."""
    physical: dict[str, Any] = {}
    if per_clock is not None:
        rates = (per_clock * CORES * LOW, per_clock * CORES * HIGH)
        physical["Xeon"] = Physical(*rates, f"{GUIDE}: {per_clock:g} a clock and core")
    return Meaning(
        words=words,
        figures={},
        advice=advice,
        reads={"{:.3g} G vectors/s": f"1e-9 / {name}"},
        physical=physical,
        lacks=lacks,
    )


WITHOUT_PRICE = ("whole", "branches")
"""Instructions outside of vectors, and branches that are guessed right, take what all instructions take."""
OF_CODE = {
    **{word: f"{words}, in machine code" for word, words in UNITS.items() if word not in WITHOUT_PRICE},
    "waits": "cycles in which machine code does nothing but wait for results",
}
"""Parameters of machine code stand for these, by the words of ``f_core_…``."""


def _cycles(words: str, name: str) -> Meaning:
    """Returns how the price of what machine code has of a core reads."""
    return Meaning(words, {}, "", {"{:.3g} ns": f"1e9 * {name} * p_units"})


def _wait(words: str, name: str, low: float | None = None, high: float | None = None, lacks: str = "") -> Meaning:
    """Returns how what a core waits for reads, beside cycles that are known."""
    physical = {}
    if low is not None and high is not None:
        physical["Xeon"] = Physical(low / HIGH, high / LOW, f"{GUIDE}: {low:g} to {high:g} cycles")
    advice = "several sums side by side in each work-item would help"
    return Meaning(
        words=words,
        figures={},
        advice=advice,
        reads={"{:.3g} ns": f"1e9 * {name} * p_units"},
        physical=physical,
        lacks=lacks,
    )


def _line(place: str, name: str) -> Meaning:
    """Returns how the price of a line reads that a store has to have first."""
    advice = f"{PADDED}; or {NEIGHBOURS.format('store')}"
    return Meaning(f"a stored line from {place}", {}, advice, {"{:.3g} ns": f"1e9 * {name} * p_units"})


TERMS: dict[str, Meaning] = {
    "launch": Meaning(
        "the launch, and its work-groups handed out to cores",
        {"{:si} work-groups": "f_thread_groups", "{:.4g} work-items in each": "f_work_items / f_thread_groups"},
        "larger work-groups, or more work in one launch, would help",
    ),
    "busy": Meaning("how much more the busiest core has to do than the mean"),
    "full": Meaning("the part of work-items that are lanes of a vector"),
    "single": Meaning("work-items that fill no vector, for each vector that could be full"),
    "left": Meaning("these, times what each costs beside a vector"),
    "vectors": Meaning("vectors of the busiest core, and what is left over, for each one that could be full"),
    "compute": Meaning(
        "operations of vectors",
        {"{:.3g} % of the work-items fill vectors": "100 * full"},
        {
            "work-groups whose first axis is a multiple of the vector's width would help": "0.99 - full",
            "fewer operations, or cheaper functions (native_), would help": "",
        },
    ),
    "divide": Meaning(
        "divisions and roots, which one unit does beside all others",
        advice="products by a reciprocal, or native_ functions, would help",
    ),
    "apart": Meaning(
        "loads and stores of lanes that do not lie side by side, one by one",
        advice=NEIGHBOURS.format("access"),
    ),
    "barriers": Meaning(
        "work-items' values put away at barriers and taken up again", advice="fewer barriers would help: larger tiles"
    ),
    "moves": Meaning("loads and stores of vectors, from global, local and private memory, and barriers"),
    "chains": Meaning("operations that wait for their own result"),
    "known": Meaning("1 where the driver's machine code is known, and 0 where the source is counted in its place"),
    "issued": Meaning("instructions of machine code, and the units that they keep busy, which overlap"),
    "passed": Meaning("atomics on lines that go from core to core"),
    "shared": Meaning(
        "atomics on lines that other cores have just changed",
        advice="sums of each work-group in local memory first would help",
    ),
    "code": Meaning(
        "what machine code takes of the busiest core",
        {"{:si} instructions": "f_core_slots", "{:si} loads": "f_core_loads", "{:si} stores": "f_core_stores"},
        "fewer instructions would help: values that are loaded once, and work-items side by side along the first axis "
        "that access elements side by side, by indices of type size_t",
    ),
    "counted": Meaning("the same, where the source is counted as there is no machine code, and else 0"),
    "core": Meaning(
        "what cores do by themselves: operations, loads and stores, divisions and waits, which overlap, and lanes apart"
    ),
    "second": Meaning("bytes from beyond the first-level caches"),
    "last": Meaning("bytes from beyond the second-level caches"),
    "memory": Meaning("bytes from beyond the last cache"),
    "stored": Meaning("stores that jump from line to line, each of which has to be fetched first"),
    "pages": Meaning("jumps to another page for lines that no second-level cache has, which nothing fetches ahead"),
    "beside": Meaning("how often a core has as many operations under way as it can, in machine code"),
    "lines": Meaning("lines from memory that nothing fetches ahead"),
    "jumps": Meaning(
        "loads from memory that nothing fetches ahead, as they go all over it, lane by lane or under masks"
    ),
    "alone": Meaning("atomics on global memory, and pixels that samplers read, one by one"),
}

PARAMETERS: dict[str, Meaning] = {
    "p_launch": Meaning("a launch", reads={"{:.3g} µs": "1e6 * p_launch"}),
    "p_wake": Meaning(
        "other cores' start, where there is more than one work-group", reads={"{:.3g} µs": "1e6 * p_wake"}
    ),
    "p_group": Meaning("a work-group handed to a core", reads={"{:.3g} ns": "1e9 * p_group"}),
    "p_start": Meaning("each of the first 256 work-groups, beside that", reads={"{:.3g} ns": "1e9 * p_start"}),
    "p_units": Meaning("cores", reads={"{:.4g}": "p_units"}, physical={"Xeon": Physical(CORES, CORES, "the driver")}),
    "p_left": Meaning("a work-item that fills no vector, beside a whole vector", reads={"{:.3g} vectors": "p_left"}),
    "p_f32": _price(
        "single-precision additions, products, multiply-adds, comparisons and conversions", "p_f32", per_clock=2
    ),
    "p_f32_minmax": _price("minima, maxima and rounding in single precision", "p_f32_minmax"),
    "p_f32_exp": _price("exponentials", "p_f32_exp", "native_exp would help"),
    "p_f32_log": _price("logarithms", "p_f32_log", "native_log would help"),
    "p_f32_sin": _price("sines and other functions", "p_f32_sin", "native_sin, or tables, would help"),
    "p_f32_pow": _price(
        "powers, error functions, tangents and angles of two numbers",
        "p_f32_pow",
        "products, or native_powr, would help",
    ),
    "p_f64": _price("double-precision operations", "p_f64", "single precision would help"),
    "p_f64_exp": _price("functions in double precision", "p_f64_exp", "single precision would help"),
    "p_i32": _price("whole-number operations (of 64 bits: two)", "p_i32"),
    "p_index": _price("index arithmetic", "p_index"),
    "p_f32_div": _price("divisions", "p_f32_div", "products by a reciprocal would help"),
    "p_f32_sqrt": _price("roots", "p_f32_sqrt", "native_rsqrt would help"),
    "p_f64_div": _price("divisions in double precision", "p_f64_div", "single precision would help"),
    "p_f64_sqrt": _price("roots in double precision", "p_f64_sqrt", "single precision would help"),
    "p_i32_div": _price("whole-number divisions and remainders", "p_i32_div", "shifts and masks would help"),
    "p_uniform": _price("loads and stores of one place by a whole vector", "p_uniform", FEWER),
    "p_load": _price("loads of 32 bits side by side", "p_load", FEWER),
    "p_store": _price("stores of 32 bits side by side", "p_store", "fewer stores would help"),
    "p_gather": Meaning(
        "loads of lanes that do not lie side by side, one by one",
        advice=NEIGHBOURS.format("load"),
        reads={"{:.3g} G lanes/s": "1e-9 / p_gather"},
        physical={"Xeon": Physical(3 * CORES * LOW, 3 * CORES * HIGH, f"{GUIDE}: three loads a clock and core")},
        lacks="instructions that put the lanes of a vector together",
    ),
    "p_scatter": Meaning(
        "stores of lanes that do not lie side by side, one by one",
        advice=NEIGHBOURS.format("store"),
        reads={"{:.3g} G lanes/s": "1e-9 / p_scatter"},
        physical={"Xeon": Physical(2 * CORES * LOW, 2 * CORES * HIGH, f"{GUIDE}: two stores a clock and core")},
        lacks="instructions that take the lanes of a vector apart",
    ),
    "p_mask": _price("conditions that lanes decide differently, which mask what stands behind them", "p_mask"),
    "p_turn": _price("iterations of loops that lanes end differently", "p_turn"),
    "p_branched": Meaning(
        "atomics, and loads and stores of numbers below 32 bits, under a mask that data make: a branch for each lane",
        advice="numbers of 32 bits, counting in a register first, or the same store in both cases, would help",
        reads={"{:.3g} ns": "1e9 * p_branched * p_units"},
    ),
    "p_apart": Meaning(
        "a vector's load from memory, lane by lane or under a mask",
        advice=NEIGHBOURS.format("load"),
        reads={"{:.3g} ns": "1e9 * p_apart * p_units"},
    ),
    "p_narrow": Meaning(
        "loads and stores of numbers below 32 bits that do not lie side by side, one by one",
        advice="numbers of 32 bits, vectors of the narrow ones (uchar4), or indices of type size_t would help",
        reads={"{:.3g} G lanes/s": "1e-9 / p_narrow"},
    ),
    "p_barrier": Meaning(
        "barriers: each work-item's values are put away and taken up again",
        {"{:.3g} in each work-item": "f_sync_barrier_local / f_work_items"},
        "fewer barriers would help: larger tiles",
        {"{:.3g} ns a work-item": "1e9 * p_barrier"},
    ),
    "p_wait": _wait(
        "additions, products and multiply-adds that wait for their own result",
        "p_wait",
        3,
        4,
        "the next vector of work-items, which begins before the last one is through",
    ),
    "p_wait_whole": _wait("whole-number operations that wait for their own result", "p_wait_whole"),
    "p_wait_div": _wait("divisions and roots that wait for their own result", "p_wait_div"),
    "p_wait_function": _wait("functions that wait for their own result", "p_wait_function"),
    "p_second": Meaning(
        words="bytes from beyond the first-level caches",
        figures={},
        advice=SMALLER,
        reads={"{:.3g} GB/s": "1e-9 / p_second"},
        physical={"Xeon": Physical(48 * CORES * LOW, 48 * CORES * HIGH, f"{GUIDE}: 48 bytes a clock and core")},
    ),
    "p_last": Meaning("bytes from beyond the second-level caches", {}, SMALLER, {"{:.3g} GB/s": "1e-9 / p_last"}),
    "p_memory": Meaning("bytes from beyond the last cache", {}, SMALLER, {"{:.3g} GB/s": "1e-9 / p_memory"}),
    "p_store_second": _line("beyond the first-level cache", "p_store_second"),
    "p_store_memory": _line("memory", "p_store_memory"),
    "p_page": Meaning(
        "a jump to another page, for a line that no second-level cache has",
        {},
        "rows that follow each other in memory, or tiles, so that fewer pages are touched in turn, would help",
        {"{:.3g} ns": "1e9 * p_page * p_units"},
    ),
    "p_jump": Meaning(
        "a load from a place that the last cache has not kept, and that nothing fetches ahead",
        {},
        "indices that are sorted, or smaller tables, would help",
        {"{:.3g} ns": "1e9 * p_jump * p_units"},
    ),
    "p_atomic": Meaning(
        "an atomic on global memory",
        {},
        "sums of each work-group in local memory first would help",
        {"{:.3g} ns": "1e9 * p_atomic"},
    ),
    "p_pixel": Meaning(
        "a pixel that a sampler reads",
        {},
        "arrays instead of images would help",
        {"{:.3g} ns": "1e9 * p_pixel * p_units"},
    ),
    "p_core_shared": Meaning(
        "an atomic on a line that another core has changed, in machine code",
        advice="sums of each work-group in local memory first would help",
        reads={"{:.3g} ns": "1e9 * p_core_shared"},
    ),
    **{f"p_core_{word}": _cycles(words, f"p_core_{word}") for word, words in OF_CODE.items()},
    "p_ports": Meaning("how well the units of a core overlap", reads={"p = {:.3g}": "p_ports"}),
    "p_within": Meaning("how well operations, divisions and waits of a core overlap", reads={"p = {:.3g}": "p_within"}),
    "p_overlap": Meaning("how well cores and what is beyond their caches overlap", reads={"p = {:.3g}": "p_overlap"}),
}
MEANINGS: dict[str, Meaning] = {
    **TERMS,
    **{name: replace(meaning, scales=SCALES.get(name, "")) for name, meaning in PARAMETERS.items()},
}
