"""The model of any kernel on a processor: lanes of vectors, caches by the order in which cores go, and pages.

A processor's compiler makes vectors of work-items side by side, where it sees that they are, and its cores do one
work-group after the other; so sub-groups, banks and sectors mean nothing there. What each term stands for:
docs/cpu-model.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from perfmodel.device import Device
from perfmodel.device.processor import MOST_KEPT, USUAL, Processor, processor
from perfmodel.kernels.kernel import Kernel
from perfmodel.models.cache_aware import OPERATIONS
from perfmodel.models.cpu_terms import MEANINGS
from perfmodel.models.gpu import EVERYDAY, SIZES_OF_EVERYDAY
from perfmodel.models.unified import LABELS, LARGE, Sizes, Unified, evaluation_kernels, measurement_classes, sizes_for
from perfmodel.models.unified_plus import FILTERS, GROUPS, SIZES, options, sum_of
from perfmodel.recipes.recipe import Recipe, TagFilter, tag_filters

RUN_OUT = 6.5
"""A core that has run out of operations beside a line from memory waits so many times as long as a load takes on
average of those that jump; chosen by other people's kernels on a Zen 5, as the families of the measurement set say it
only roughly: twice or half of it hardly changes their errors."""

MIXED = 1.5
"""A sampler that mixes the pixels around a place takes so many times the time of a pixel longer, on a Zen 5; no family
of the measurement set has such."""

PAGE, PAGES = 4096, 64
"""Bytes of a page, and the pages that a core's first table of addresses holds."""


def _named(dtypes: str, kinds: str) -> tuple[str, ...]:
    return tuple(f"{dtype}_{kind}" for dtype in dtypes.split() for kind in kinds.split())


# Operations that cost about the same share a price. The unit that divides works beside the others.
STRAIGHT = {
    "p_f32": (*GROUPS["p_f32"], "float32_compare", *OPERATIONS["p_convert"]),
    "p_f32_minmax": tuple(name for name in GROUPS["p_f32_minmax"] if name != "float32_compare"),
    "p_f32_exp": _named("float32", "exp exp2 exp10 expm1 native"),
    "p_f32_log": _named("float32", "log log2 log10 log1p"),
    "p_f32_sin": _named("float32", "sin cos asin acos atan sinh cosh tanh hypot fmod"),
    "p_f32_pow": _named("float32", "pow erf tan atan2"),
    "p_f64": GROUPS["p_f64"],
    "p_f64_exp": (*GROUPS["p_f64_exp"], *_named("float64", "exp10 atan2")),
    **{name: OPERATIONS[name] for name in ("p_i32", "p_index")},
}
DIVIDED = {
    "p_f32_div": _named("float32", "div"),
    "p_f32_sqrt": _named("float32", "sqrt rsqrt cbrt"),
    "p_f64_div": _named("float64", "div"),
    "p_f64_sqrt": _named("float64", "sqrt rsqrt"),
    "p_i32_div": OPERATIONS["p_i32_div"],
}
DIVIDED_AT_ONCE = 4
"""Numbers that the unit divides in the time of one: wider vectors take as many times longer as they are wider."""
# A vector has room for half as many whole numbers of 64 bits.
WIDE = {
    "p_i32": [*OPERATIONS["p_i64"], *OPERATIONS["p_i64_mul"]],
    "p_i32_div": OPERATIONS["p_i64_div"],
}
FUNCTIONS = _named("float32", "exp log pow sin cos tanh")
WHOLE = ("int32", "uint32")
ISSUED = ("slots", "functions")
"""A core issues these one after the other, by the words of ``f_core_…``."""
SIDE_BY_SIDE = ("loads", "stores", "floats", "shuffles", "transfers", "divides", "products")
"""All of this goes on in a core at the same time, beside what it issues."""
BY_ITSELF = ("waits", "gathers", "masked", "atomics", "guesses", "calls")
"""Each of these keeps most of a core busy."""
MEASURED = """\
group_sums turns:* tree:* index:wide,signed m:256,1024,4096 lsize_0:64 n:2^12,2^16,2^18
records kind:* index:* bounce:* lsize_0:64 n:2^12,2^16,2^21
selections space:* passed:* m:4,16 n:2^12,2^16
texts done:* lengths:* dtype:* m:32,128 lsize_0:256 n:2^12,2^16
windows border:* dtype:* index:* loops:written_out reach:0,1,2 n:128,512
windows border:* dtype:float32,uint8 index:wide,signed loops:rolled reach:1,2 n:256
windows border:skipped dtype:float32,uint8 index:* loops:written_out reach:1 lsizes:8x8,32x8,64x4,256x1 n:512
windows border:skipped dtype:* index:wide,signed loops:written_out reach:1 n:2048
windows border:skipped dtype:float32,uint8 index:wide,signed loops:written_out reach:1 n:4096,8192
vector_functions function:* width:* m:16,64 n:2^12,2^14,2^16
global_copy stride:1,4 loads:1,4 lsize_0:256 n:2^22,2^24,2^26
transpose access:* lsizes:16x16 n:2048,4096,8192
matrix_add lsizes:16x16,32x8 n:2048,8192
column_sum n:4096,8192
row_passes walk:* passes:1,2 m:1024 n:2^14
pointer_chase waits:* span:67108864 m:16 n:2^14,2^18
sparse_rows storage:* columns:* lengths:even dtype:float32 span:4194304 m:8 n:2^17
elementwise n:2^24
vector_add n:2^24,2^26
"""
"""Families that show what a compiler makes of ordinary code, and arrays that no cache holds."""
CYCLES = {
    "slots": 0.25, "loads": 0.6, "stores": 0.8, "floats": 0.6, "shuffles": 0.5, "transfers": 0.8, "divides": 1.0,
    "products": 1.0, "waits": 0.7, "gathers": 1.1, "masked": 18.0, "atomics": 18.0, "guesses": 16.0,
    "functions": 1.0, "calls": 10.0,
}  # fmt: skip
"""Cycles of a core for each of these, about, as others have measured them."""
MEASURED_CYCLES = {"guesses": (11.0, 25.0), "atomics": (16.0, 20.0)}
"""The least and the most that others have measured, where that is narrower than what a fit might find."""
HANDED_OVER = 40.0
"""Cycles until a line is there that another core has changed, about."""
SHARED = 64
"""Bytes of a line, which cores that update the same counters take from each other."""
CLOCK = 3e9
"""The clock in Hz of a processor that tells none."""
BOUNDS: dict[str, dict[str, float]] = {
    "p_last": {"value": 1e-11, "min": 2e-12, "max": 1e-10},
    "p_memory": {"value": 5e-11, "min": 5e-12, "max": 3e-10},
    "p_branched": {"value": 1.5e-9, "min": 1e-9, "max": 4e-9},
    "p_ports": {"value": 2.7, "min": 1.0, "max": 8.0},
}
"""Bounds are physical: 10 to 500 GB/s from the last cache and 3 to 200 GB/s from memory, in seconds a byte; 16 to 40
clocks of two cores for a wrong guess, which every other branch is where half of the lanes take part."""


def _of_core(word: str) -> str:
    return f"p_core_{word} * f_core_{word}"


def _sum(words: Iterable[str]) -> str:
    return " + ".join(map(_of_core, words))


def bounds_on(cores: float, clock: float) -> dict[str, dict[str, float]]:
    """Returns where a fit begins on so many cores of such a clock in Hz, and what it may find: `BOUNDS`, and for the
    units of cores, and for lines that go from one to another, a third to three times what they are known to take, or
    the range that others have measured."""
    found = {}
    for word, cycles in CYCLES.items():
        least, most = MEASURED_CYCLES.get(word, (cycles / 3, cycles * 3))
        ends = {"value": cycles, "min": least, "max": most}
        found[f"p_core_{word}"] = {end: each / (cores * clock) for end, each in ends.items()}
    handed_over = {"value": HANDED_OVER, "min": HANDED_OVER / 3, "max": HANDED_OVER * 3}
    found["p_core_shared"] = {end: each / clock for end, each in handed_over.items()}
    return BOUNDS | found


def model_of(known: Processor) -> str:
    """Returns the model string of a processor with such vectors and caches, as numbers that others can replace."""
    lanes = f"${{subgroup={known.lanes}}}"
    first, second, last = (
        f"${{{level}_bytes={size}}}" for level, size in (("l1", known.first), ("l2", known.second), ("l3", known.last))
    )
    width, vector = f"width:{lanes}", f"granularity:vector{lanes}"

    def operations(prices: Mapping[str, Sequence[str]]) -> str:
        both = {
            price: sum_of(names, vector) + (f" + 2 * {sum_of(WIDE[price], vector)}" if price in WIDE else "")
            for price, names in prices.items()
        }
        return "\n           + ".join(f"{price} * ({what})" for price, what in both.items())

    def waiting(names: Sequence[str]) -> str:
        return sum_of(names, f"carried_{vector}")

    def moved(what: str) -> str:
        return "(" + " + ".join(f"f_mem_lanes_{space}_{what}_{width}" for space in ("global", "local", "scratch")) + ")"

    def jumped(keeps: str) -> str:
        return f"(f_mem_missed_jumps_keeps:{keeps}_{width} - f_mem_missed_store_jumps_keeps:{keeps}_{width})"

    return f"""
launch   = p_launch * f_sync_kernel_launch + p_wake * min(f_thread_groups - 1, 1)
           + p_group * f_thread_groups + p_start * min(f_thread_groups, 256)
busy     = ceil(f_thread_groups / p_units) * p_units / f_thread_groups
known    = f_core_known
counted  = (1 - known) * busy
full     = f_vector_steps_{width} * {lanes} / f_work_items
single   = f_vector_steps_left_{width} * {lanes} / f_work_items
left     = p_left * single
vectors  = counted * (full + left)
compute  = vectors * (p_mask * f_branch_if_masked_{vector} + p_turn * f_branch_loop_masked_{vector}
           + {operations(STRAIGHT)})
divide   = counted * (full + {DIVIDED_AT_ONCE} / {lanes} * single) * ({operations(DIVIDED)})
apart    = counted * ({lanes} * full + left) * (p_gather * {moved("load_gathered")}
           + p_scatter * {moved("store_gathered")}
           + p_narrow * ({moved("load_narrow")} + {moved("store_narrow")})
           + p_branched * f_mem_lanes_branched_{width})
barriers = counted * p_barrier * f_sync_barrier_local
moves    = vectors * (p_uniform * ({moved("load_uniform")} + {moved("store_uniform")})
           + p_load * {moved("load_unit")} + p_store * {moved("store_unit")}) + barriers
chains   = vectors * (p_wait * {waiting(GROUPS["p_f32"])} + p_wait_whole * {waiting(WHOLE)}
           + p_wait_div * {waiting(_named("float32", "div sqrt rsqrt"))} + p_wait_function * {waiting(FUNCTIONS)})
issued   = overlap({", ".join((_sum(ISSUED), *map(_of_core, SIDE_BY_SIDE)))}, p_ports)
passed   = f_mem_passed_on_global_atomic_block:{SHARED}
shared   = known * p_core_shared * max(passed / p_units, f_mem_passed_on_global_atomic_block:{SHARED}_busiest)
code     = known * busy * (issued + {_sum(BY_ITSELF)})
core     = code + shared + overlap(compute + moves, divide, chains, p_within) + apart
second   = p_second * f_mem_missed_keeps:{first}_{width}
last     = p_last * f_mem_missed_keeps:{second}_{width}
memory   = p_memory * f_mem_missed_keeps:{last}_{width}
stored   = p_store_second * f_mem_missed_store_jumps_keeps:{first}_{width}
           + p_store_memory * f_mem_missed_store_jumps_keeps:{last}_{width}
pages    = p_page * min(f_mem_missed_block:{PAGE}_keeps:{PAGES * PAGE}_{width} / {PAGE},
                        f_mem_missed_jumps_keeps:{second}_{width})
beside   = (f_core_slots + f_core_functions) / ${{window=512}}
lines    = {jumped(last)} + f_mem_missed_waits_keeps:{last}_{width}
jumps    = (1 - known) * (p_jump * {jumped(last)} + p_apart * f_mem_missed_waits_keeps:{last}_{width})
           + known * {RUN_OUT} * p_jump * lines * beside / max(lines + beside, 1)
alone    = (1 - known) * p_atomic * f_mem_access_global_atomic
           + p_pixel * (counted * f_mem_access_global_load_tag:image
                        + {MIXED} * f_mem_access_global_load_tag:filtered)
launch + alone + overlap(core, second + last + memory + stored + pages + jumps, p_overlap)
"""


def _without_maxima(tags: TagFilter) -> TagFilter:
    """Returns a filter without atomic maxima, which are cheap where a test says that they change nothing."""
    return tuple("op:add" if tag == "op:*" and tags[0] == "atomic_update" else tag for tag in tags)


def classes(sizes: Sizes) -> list[TagFilter]:
    """Returns the unified model's nine classes, in work-groups whose rows are whole vectors, and without what takes a
    processor seconds."""
    groups = {"2-D_Large": "16x16,32x16", "1-D_Large": "256,512"}
    found: list[TagFilter] = []
    for tags in measurement_classes(sizes).values():
        changed = []
        for tag in tags:
            name, _, value = tag.partition(":")
            changed.append(f"{name}:{groups.get(value, value)}" if name == "lsizes" else tag)
        if tags[0] == "filled_stride" and sizes is not LARGE:
            changed = [tag if not tag.startswith("n:") else "n:2^12,2^15,2^18" for tag in changed]
        if tags[0] == "arithmetic" and sizes is not LARGE:
            changed = [tag if not tag.startswith("k:") else "k:256,512" for tag in changed]
        found.append(changed)
    return found


class Cpu(Recipe):
    """One model for kernels of any kind on a processor, predicted from their source.

    It is calibrated with the kernels of `UnifiedPlus`, with what programs do beside, as on GPUs, and with `MEASURED`;
    it is judged by the unified model's test kernels.
    """

    name = "cpu"
    summary = "the model of any kernel on a processor: vectors, caches by the order of a core, pages"
    models: ClassVar = {"cpu": model_of(USUAL)}
    meanings: ClassVar = {"cpu": MEANINGS}
    ranked = False
    baselines = False
    published = Unified.published

    def models_on(self, device: Device | None, notes: list[str]) -> Mapping[str, str]:
        """Returns the model with the width of the device's vectors and the sizes of its caches."""
        known = processor(device)
        if known is None:
            notes.append(
                f"vectors of {USUAL.lanes} lanes and caches of {USUAL.first >> 10} KB, {USUAL.second >> 20} MB and "
                f"{USUAL.last >> 20} MB are taken, as the device is not here to be asked"
            )
        return {"cpu": model_of(replace(known, last=min(known.last, MOST_KEPT)) if known else USUAL)}

    def measurement_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        sizes = sizes_for(seconds_of)
        everyday = [_without_maxima(tags) for tags in tag_filters(EVERYDAY, SIZES_OF_EVERYDAY[False])]
        return [*classes(sizes), *tag_filters(FILTERS, SIZES[sizes is LARGE]), *everyday, *tag_filters(MEASURED, {})]

    def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        return list(evaluation_kernels(sizes_for(seconds_of)).values())

    def fit_options(self, model: str, device: Device | None) -> Mapping[str, Any]:
        given = options(device)
        cores, clock = (device.compute_units, 1e6 * device.clock_mhz) if device else (1, CLOCK)
        return {**given, "parameters": {**given["parameters"], **bounds_on(cores, clock or CLOCK)}}

    def label(self, kernel: Kernel) -> str:
        return LABELS[kernel.name]
