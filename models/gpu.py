"""The model of any kernel on a GPU: overlapped resources over what a compiler leaves of the source.

It joins the unified model's resources (`unified_plus`) with what a compiler leaves of OpenCL C (`cache_aware`), and has
prices for atomics, private arrays in memory and gathers beside. Terms were chosen by leaving families out, and by half
of benchmarks/programs, which no fit sees. What each stands for: docs/gpu-model.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from perfmodel.basics.errors import DeviceError
from perfmodel.counting.counts import RESERVED
from perfmodel.device import Device
from perfmodel.device.facts import facts_called
from perfmodel.device.occupancy import limits_of_device
from perfmodel.features.lone_sectors import KEPT
from perfmodel.kernels.kernel import Kernel
from perfmodel.models.cache_aware import OPERATIONS, characterization, random_kernels, set_of
from perfmodel.models.gpu_parameters import MEANINGS
from perfmodel.models.gpu_terms import BUSY, ONE_BY_ONE
from perfmodel.models.unified import LABELS, LARGE, Unified, evaluation_kernels, measurement_classes, sizes_for
from perfmodel.models.unified_plus import FILTERS, SIZES, SLOW, options, sum_of
from perfmodel.recipes.recipe import Recipe, TagFilter, tag_filters

COMPARED = ["float16_compare", "float32_compare", "int32_compare", "uint32_compare"]
PRICES = {parameter: [name for name in names if name not in COMPARED] for parameter, names in OPERATIONS.items()}
"""Operations by what one costs. All comparisons of 32 bits are done where whole numbers are."""
PRICES["p_i32"] += COMPARED
# Functions by how long each takes (`special_functions`); rough ones are one instruction of the special-function units.
FUNCTIONS = {
    "p_f32_div": "div sqrt rsqrt exp exp2 exp10 native",
    "p_f32_log": "log log2 log10 log1p expm1 sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc"
    " cbrt hypot fmod",
    "p_f32_pow": "pow tgamma lgamma",
    "p_f64_exp": "exp exp2 exp10 sinh asin",
    "p_f64_sin": "sin cos tan acos atan cosh tanh cbrt hypot expm1 fmod",
    "p_f64_log": "log log2 log10 log1p atan2 erf erfc pow asinh acosh atanh tgamma lgamma",
}
for parameter, functions in FUNCTIONS.items():
    PRICES[parameter] = [f"float{parameter[3:5]}_{name}" for name in functions.split()]
PRICES["p_f32"] += [f"{dtype}_{kind}" for dtype in ("float16", "bfloat16") for kind in ("add", "mul", "madd")]
PRICES["p_f32_minmax"] += [f"float16_{kind}" for kind in ("min", "max", "fabs")]
PRICES["p_f32_div"] += [f"float16_{kind}" for kind in ("div", "sqrt", "rsqrt", "exp", "exp2", "native")]
PRICES["p_convert"] += ["float16_convert", "bfloat16_convert"]

ISSUED = "\n    + ".join(
    f"{parameter} * {sum_of(names, 'granularity:subgroup')}" for parameter, names in PRICES.items()
)

# Functions that compilers call, or branch over: nothing is issued beside them, so that their instructions come one
# after the other, as many as they take the time of single-precision ones. Logarithms and their like are none, sines and
# such with slow ways for large numbers are.
BRANCHED_OVER = ("float32_sin", "float32_cos", "float32_tan", "float32_fmod")
CALLED_AS_A_WHOLE = {
    name: PRICES[name] for name in ("p_f32_pow", "p_f64_div", "p_f64_exp", "p_f64_sin", "p_f64_log", "p_i64_div")
}
CALLED = "\n    + ".join(
    f"{parameter} * {sum_of(names, 'granularity:subgroup')}"
    for parameter, names in {"p_f32_log": BRANCHED_OVER, **CALLED_AS_A_WHOLE}.items()
)

# What accesses bring from the second-level cache: of arrays that a first-level cache does not keep as a whole. Loads
# that jump about go to memory for the part of their reach that is beyond the cache.
LOADED = "f_mem_footprint_global_load_granularity:workgroup_block:32"
LOADED_LINES = LOADED.replace("block:32", "block:128")
LINES, SECTORS = (f"f_mem_transactions_global_load_block:{size}" for size in (128, 32))
STORED_LINES, STORED_SECTORS = (f"f_mem_transactions_global_store_block:{size}" for size in (128, 32))
UPDATED = "f_mem_transactions_global_atomic_passes:32"
STORED = "f_mem_footprint_global_store_granularity:workgroup_block"
MISSED = "f_mem_scattered_global_load_missed_keeps:${l2_bytes=50000000}_block:32_reach:>8000000"
MET = "f_mem_contended_global_atomic_block:512"
REPEATED = "f_mem_repeated_global_load_block:32"
REVISITED = "f_mem_revisited_global_load_keeps:${l2_bytes=50000000}"
STRAY = MISSED.replace("_load", "_store")
MISSED_GAPS, STRAY_GAPS = f"{MISSED}_gaps", f"{STRAY}_gaps"
CHANGED = MISSED.replace("_load", "_atomic")
CHANGED_GAPS = f"{CHANGED}_gaps"
CHANGED_ONCE = "f_mem_footprint_global_atomic_block:32"
ONCE = "f_mem_scattered_global_load_missed_first_block:64_reach:>8000000"

# Private arrays in memory: their elements of neighbours lie side by side, and stores go through to the second level.
# Sparse ones are sectors that share no line with others, as are lone ones of arrays.
SCRATCH_LOADED, SCRATCH_STORED = (f"f_mem_transactions_scratch_{direction}_block:32" for direction in ("load", "store"))
SPARSE_LOADED, SPARSE_STORED, LONE_STORED = (
    f"max(4 * {sectors.replace('32', '128')} / max({sectors}, 1) - 1, 0) / 3"
    for sectors in (SCRATCH_LOADED, SCRATCH_STORED, STORED_SECTORS)
)

WHOLE = 0.47
"""Scattered sectors that are stored as a whole take so much of the time of others, of which the rest is read first;
measured by `benchmarks.records`, as no generator has any."""

IN_PLACE = 0.7
"""Scattered sectors that the same work-items have just loaded take so much of it; measured likewise."""

STORES = "max(f_mem_access_global_store_granularity:subgroup, 1)"
WAITING_LINES = 4
"""Stores that follow each other to so few lines are joined before they leave the first-level cache, and none where they
go to twice as many, or to bytes that were stored to before; measured by `benchmarks.records`."""
OVERWRITTEN = "max(1 - f_mem_footprint_global_store_block:4 / max(f_mem_bytes_global_store, 1), 0)"
NOT_JOINED = f"max(min(max({STORED_LINES} / {STORES} / {WAITING_LINES} - 1, 0), 1), {OVERWRITTEN})"
STORED_AGAIN = f"max({STORED_SECTORS} - {STORED_SECTORS}_fresh, 0)"
OF_ONE = 0.53
"""A line that single work-items store to takes the second-level cache so much of the time of another, and as much for
each sector that one of them has alone, or that is filled in part again and again; measured by `benchmarks.records`, as
no generator stores records by words, or adds to numbers in memory."""
STORED_ALONE = f"""\
max({NOT_JOINED} * max(2 * {STORED_SECTORS} - f_mem_access_global_store,
                     min({STORED_AGAIN}, 2 * {STORED_SECTORS} - f_mem_bytes_global_store / 16), 0),
    f_mem_parted_sectors)"""
"""Sectors that one work-item of a sub-group stores to, where no more than two share one; or those that a loop stores to
again, and leaves a part of out each time; or that are left a part of out as a load comes between the stores to a
record."""

OF_PIXELS, OF_PARTS = 0.65, 0.45
"""A sector of an image that is written takes the second-level cache so much of the time of an array's line, and so much
more where only a part of it is; measured by `benchmarks.pixels`, as no generator writes images."""
PIXELS = "f_mem_transactions_global_store_block:32_tag:image"
STORED_PIXELS = f"""\
({OF_PIXELS} * {PIXELS}
               + {OF_PARTS} * max({PIXELS} - f_mem_bytes_global_store_tag:image / 32, 0))"""

OPEN_LINES, YOUNG, STEPS = 0.9, 64, 7
"""Lines that are stored to step by step: a step finds its line lost if lines under way, those of loads as well, need
more than so many times the cache, about, and more than so many bytes of lines have been stored by each work-item; no
more than so many steps of a sector count, as bytes of a word are joined."""
LINES_IN_PLACE, SECTORS_IN_PLACE = (f"{kind}_tag:changed" for kind in (STORED_LINES, STORED_SECTORS))
"""Stores to where the same work-items have just loaded from: their lines are those of the loads, and whole."""
JOINED, SKEW = 1.5, 20
"""Sectors that two sub-groups fill: memory reads so many times each, if work-items have many more stores than so many;
with few stores, the second sub-group comes in time. These and those above are measured by `benchmarks.records`, as no
generator stores so."""

WAITS = "f_mem_waits_global_granularity"
ROUNDS = "f_mem_rounds_global_granularity"
FRESH = "f_mem_rounds_global_fresh_granularity:longest"
FAR = FRESH.replace("fresh", f"fresh_beyond:{KEPT}")
AT_ONCE = f"{SECTORS} / max({ROUNDS}:subgroup, 1) * together"
# Stores under a condition are under way in a part of the rounds only.
STORE_ROUNDS = f"max(f_mem_rounds_global_store_granularity:subgroup, {ROUNDS}:subgroup, 1)"
STORED_AT_ONCE = f"{STORED_SECTORS} / {STORE_ROUNDS} * together"

# Products of matrices on tensor cores, as multiplications of halves that take as long.
OF_HALVES = {"float16": 1, "bfloat16": 1, "tfloat32": 2, "int8": 0.5, "float8": 0.5, "float64": 14.8}
PRODUCTS = "(" + " + ".join(f"{times:g} * f_op_{dtype}_mma" for dtype, times in OF_HALVES.items()) + ")"
MULTIPLICATIONS = 945e12 / 2
"""So many multiplications and additions of halves an H200's tensor cores do in a second, of 989e12 / 2 on the data
sheet; measured by `benchmarks.triton_kernels`, as no generator has such."""

FENCES = 132 / 4e-9
WAIT_FOR_FENCE = 3e-7
"""So many fences beyond a work-group an H200's units do in a second, each for a sub-group, and so many seconds does a
sub-group that is alone wait for one that orders what it accesses; measured by `benchmarks.fences`, as no generator has
such."""

PACE = 1.09
"""A cycle of an H200's schedulers at 1.98 GHz, relative to what `p_f32` is for an addition, a product or a multiply-add
that is counted by the source; measured by `benchmarks.issue_rates`, as no generator is counted by machine code."""

ARRIVAL = 0.55
"""Sub-groups come to a barrier one after the other, each so many times as late as an operation waits for another one
(two cycles), and all wait for the last; measured by `benchmarks.warps_alone`."""

ROOM = {"p_resident_items": 2048, "p_resident_groups": 32, "p_registers": 65536, "p_local_bytes": 233472}
"""A compute unit of an H200 has room for so much at a time; what others have follows from their facts."""

ASKED, OF_SLICES, OF_EIGHT = 1.3, 7, 4.5
"""Texture units take so many cycles more for a sub-group than fits say, which count kernels by their source, whose
other instructions they take for a part of it; by the same kernels' machine code, and `benchmarks.pixels`. They read
half as many pixels at a time where images have three axes, and again where they mix the pixels around a place; for one
among eight pixels their bytes take so many times longer besides."""
FARTHEST = 2.5
"""The sum of the busiest of about a hundred units lies so many standard deviations beyond their mean."""
EVENED = 0.4
"""Units that take a new work-group when one has ended differ by so much less: at the end they are anywhere within the
last ones, as if these were a third as long (the variance of what is left, `1 - 3 ** -0.5` in all)."""

MODEL = f"""
transfer = p_to * f_transfer_bytes_to + p_to_latency * f_transfers_to + p_from * f_transfer_bytes_from \
+ p_from_latency * f_transfers_from
launch   = p_launch * f_sync_kernel_launch
groups   = p_group * f_thread_groups
group    = f_work_items / f_thread_groups
slots    = ceil(group / ${{subgroup=32}}) * ${{subgroup=32}}
idle     = slots / (ceil(group / 32) * 32)
moved    = p_moved * f_held_moved * step(${{moved_steps=1}} - f_held_steps)
words    = max(f_held_registers - {RESERVED} + moved - ${{item_registers=255}}, 0)
room     = min(p_resident_groups, p_resident_items / slots, p_registers / (slots * (f_held_registers + moved - words)),
               p_local_bytes / (f_held_local + 1024))
resident = group * max(floor(room), 1)
together = min(f_work_items, resident * p_units)
shared_out = f_thread_groups / p_units
strayed  = {FARTHEST} * f_issue_uneven * min(shared_out, resident / group) ** 0.5
           * (1 - {EVENED} * step(shared_out - resident / group))
longest  = max({ROUNDS}:longest / group / max({ROUNDS}:workgroup, 1),
               (1 - step({ROUNDS}:longest - 0.5)) * f_issue_longest)
loads    = f_mem_access_global_load_granularity:subgroup
           - f_mem_access_global_load_tag:constant_granularity:subgroup
known    = f_issue_known
told     = {ISSUED}
           + p_branch * f_branch_if_granularity:subgroup
pipes    = max({PACE} * p_f32 * min(${{f32_lanes=128}}, ${{issue_lanes=128}}) / 128 * max(
               f_issue_slots * 128 / ${{issue_lanes=128}}, f_issue_single * 128 / ${{f32_lanes=128}},
               f_issue_fma * 64 / ${{i32_lanes=64}}, f_issue_alu * 64 / ${{i32_lanes=64}},
               f_issue_convert * 64 / ${{convert_lanes=64}}, f_issue_special * 16 / ${{special_lanes=16}}),
               p_f64 / 2 * f_issue_fp64)
issued   = known * pipes + (1 - known) * (told)
           + p_access * loads + p_barrier * f_sync_barrier_local
compute  = {BUSY} * idle * issued
lines    = overlap(p_l1_global * max(f_mem_transactions_global_load_banks:32, ${{fetch_clocks=1}} * loads),
           p_l1_line * {LINES}, 4)
           + p_store * f_mem_access_global_store_granularity:subgroup + p_l1_store * ({STORED_LINES} + {UPDATED})
local    = p_l1_local * (
           max(f_mem_transactions_local_banks:32, ${{load_clocks=1}} * f_mem_access_local_granularity:subgroup)
           + f_sync_collective_subgroup_shuffle_granularity:subgroup)
lookups  = p_constant * f_mem_transactions_global_load_block:4_tag:constant
           + p_constant_line * f_mem_transactions_global_load_block:64_tag:constant
             * max(1 - p_near_constant / max(f_mem_tables, 1), 0)
asked    = p_l1_global * f_issue_query
fetched  = (lines + p_fence * f_sync_fence_granularity:subgroup
           + p_l1_global * (f_mem_access_scratch_load_granularity:subgroup + words * f_work_items / 32)
           + max((p_image + known * {ASKED} * p_l1_global) * f_mem_access_global_load_tag:image_granularity:subgroup
                 + p_pixel * f_mem_bytes_global_load_tag:image
                 + {OF_EIGHT} * p_pixel * f_mem_bytes_global_load_tag:thick,
                 {OF_SLICES} * p_l1_global * (f_mem_access_global_load_tag:volume_granularity:subgroup
                                               + f_mem_access_global_load_tag:filtered_granularity:subgroup)))
l1       = {BUSY} * idle * overlap(overlap(fetched, local, p_apart), lookups, 4)
tensor   = {BUSY} * p_mma * {PRODUCTS}
brought  = f_mem_footprint_global_load_brought_block:64
taken    = {LOADED}
private  = f_mem_scratch / f_work_items + 4 * words
own      = private * together / p_units / p_near_scratch
spilled  = own ** 4 / (1 + own ** 4) * (32 * {SCRATCH_LOADED} + 4 * words * f_work_items)
written  = 32 * {SCRATCH_STORED} + 4 * words * f_work_items
held     = (private * together / p_cache) ** 2
beyond   = held / (1 + held)
unit     = min(taken / f_thread_groups * max(together / group / p_units, 1), brought)
lost     = (unit / p_near_loaded) ** 4 / (1 + (unit / p_near_loaded) ** 4)
again    = {REPEATED} * lost
walked   = 128 * {LINES} / max({ROUNDS}:subgroup, 1) * together / group * slots / 32 / p_units / p_near_loaded
evicted  = walked ** 4 / (1 + walked ** 4)
reused   = min({LOADED}_once / f_work_items * together, brought)
further  = (reused / ${{l2_bytes=50000000}}) ** 8
open     = min({AT_ONCE}, reused) + min({STORED_AT_ONCE}, {STORED}:32 / f_work_items * together)
gone     = (2 * open / p_cache) ** 4 / (1 + (2 * open / p_cache) ** 4)
filled   = f_mem_footprint_global_block:128 / p_cache
missed   = filled ** 8 / (1 + filled ** 8)
filling  = f_mem_footprint_global_store_block:32
sparse   = max(f_mem_footprint_global_store_block:256 / max(f_mem_footprint_global_store_block:128, 1) - 1, 0)
apart    = sparse * max(f_mem_footprint_global_store_block:128 - filling, 0) / 3
unfilled = max(filling - f_mem_footprint_global_store_block:4, 0)
met      = max({MET}, min({MET}_walked * f_work_items / together, {UPDATED}))
contend  = p_contend * (met + f_mem_contended_global_store_block:512 + together * f_mem_retries_global_block:512)
tries    = p_wave * f_mem_retries_global
l2       = p_l2_load * (spilled + again + evicted * 32 * {SECTORS}_again) + p_l2_scratch * written
           + p_l2_atomic * ({UPDATED} + together * f_mem_retries_global_all)
           + p_l2_load * {LOADED}_beyond:{KEPT} + p_l2_single * f_mem_lone_sectors
           + p_l2_line * max({STORED_LINES}, {OF_ONE} * ({STORED_LINES} + {STORED_ALONE}), {STORED_PIXELS})
           + p_l2_partial * (missed * (1 - sparse) * unfilled + gone * max({STORED}:32 - {STORED}:4 - unfilled, 0))
phases   = p_phase * min(f_mem_rounds_global, f_mem_rounds_local_store, f_sync_barrier_local) / together
waves    = p_wave * min(f_mem_rounds_global, f_work_items) / together
jumped   = {MISSED_GAPS} + evicted * gone * further / (1 + further) * 32 * {SECTORS}_again
changed  = {SECTORS_IN_PLACE} / max({STORED_SECTORS}, 1)
begun    = together * (min(4 * {LINES} / max({ROUNDS}:subgroup, 1), {LOADED_LINES} / f_work_items)
                       + min(4 * ({STORED_LINES} - {LINES_IN_PLACE}) / {STORE_ROUNDS}, {STORED}:128 / f_work_items))
torn     = max({STORED_SECTORS} - f_mem_bytes_global_store / 32, 0) / {STORES}
stores   = f_mem_access_global_store / f_work_items
joined   = f_mem_access_global_store_granularity:subgroup * min(torn, 1 / max(torn, 1))
           * min(f_mem_bytes_global_store / 32 / max({STORED_SECTORS}, 1), 1) * stores / (stores + {SKEW})
parted   = {STORED_SECTORS}_joint * step(32 * {STORED_SECTORS}_joint - 1.01 * f_mem_bytes_global_store)
stepped  = min(max(parted - {STRAY} / 32, 0), {STEPS} * {STORED_SECTORS}_fresh)
later    = max({NOT_JOINED} * (1 - changed) * stepped
                   * max(1 - {YOUNG} / max({STORED}:128 / f_work_items, 1), 0)
                   * begun ** 3 / (begun ** 3 + ({OPEN_LINES} * p_cache) ** 3),
               {JOINED} * min(joined, filling / 32))
strewn   = max(missed * apart, {STRAY_GAPS}, 32 * missed * later)
           - (1 - {WHOLE}) * {STRAY_GAPS}_whole - (1 - {IN_PLACE}) * changed * {STRAY_GAPS} + {CHANGED_GAPS}
restored = (1 - changed) * 32 * {STORED_AGAIN} * gone * (1 - 1 / max(f_mem_rounds_global_store / f_work_items, 1))
lone     = {LONE_STORED}
scatter  = p_scatter * (jumped + beyond * spilled * {SPARSE_LOADED})
           + p_scatter_store * (strewn + min(restored * lone, 32 * max({STORED_SECTORS} - later, 0))
                                + beyond * written * {SPARSE_STORED})
stored   = f_mem_footprint_global_store_block:64 - 2 * apart
dram     = p_dram * (missed * max(brought - {ONCE}, 0) + {MISSED} - {MISSED_GAPS}
                     + max(missed * max(stored, 0), {STRAY} - {STRAY_GAPS})
                     + 2 * max(max(missed * {CHANGED_ONCE}, {CHANGED}) - {CHANGED_GAPS}, 0)
                     + {REVISITED} + 2 * {REVISITED.replace("load", "store")}
                     + beyond * (spilled + written) + {REPEATED} * further / (1 + further)
                     + restored * (1 - lone)) + scatter
whole    = min(taken * slots / 32 / max(32 * {SECTORS}_fresh, 1), 1)
fresh    = whole * ({FAR} + ({FRESH} - {FAR}) * min(together / f_work_items, 1))
far      = min({WAITS}:longest, fresh + ({FRESH} - fresh) * lost + max({WAITS}:longest - {FRESH}, 0) * evicted)
shared   = min(brought / max(taken, 1), 1) ** 0.5
called   = {CALLED}
waits    = ((1 - known) * p_wait_scratch + p_wait_load * own ** 4 / (1 + own ** 4))
             * f_mem_waits_scratch_granularity:longest
           + (1 - known) * p_wait_near * {WAITS}:longest
           + p_wait_load * far + p_wait_dram * missed * shared * min(far, fresh)
           + (1 - known) * p_wait_local * f_mem_waits_local_granularity:longest
           + p_wait_op * ({ONE_BY_ONE} + known * {ARRIVAL} * (slots / 32 - 1) * f_sync_barrier_local)
           + p_wait_fence * f_sync_fence_granularity:longest
           + (1 - known) * (p_wait_double * f_op_float64_carried_granularity:longest + p_wait_slow * {SLOW})
           + group / slots * 32 * p_units * (lines + local)
turns    = waits * max(1 / f_work_items, 1 / max(longest, 1) / together)
latency  = turns * max(1 - known * issued / 4 / max(turns, 1e-9), 0)
supply   = overlap(l1, l2, dram + phases, contend + tries, p_overlap)
work     = overlap(compute, tensor, supply, p_chip)
transfer + launch + asked + max(groups, overlap(latency, waves, work, p_hide))
"""

# What the programs of others do beside that.
EVERYDAY = """\
atomic_update space:* place:* op:* counters:1,32,1024,65536,4194304 m:1,4,16 n:{few},{some}
atomic_update space:* place:* counters:1,1024 m:16,64 lsize_0:64,256,512 n:{few_items},{some}
private_array start:same access:* words:4,8,16,32,64,128,256 m:64,256 n:{few},{some}
private_array start:same access:* words:16,64,256 m:256 lsize_0:64 n:{few_items},{some}
private_array start:hashed access:* words:16,64,256,1024 m:64,256 lsize_0:64 n:{few_items},{few}
pointer_chase waits:* span:{spans} m:16,64 n:{few_items},{few},{some}
decisions form:* dtype:* start:* unrolled:1,4 m:64,256 n:{some}
decisions form:* dtype:* start:* m:256 n:{few_items}
residency step:* held:1024,8192,16384,45056 lsize_0:32,64,256 m:16,64 n:{some}
residency step:* held:8192,45056 lsize_0:16,128 m:16 n:{few}
dependent_steps chain:* op:* steps:1,4,16 m:64,256 n:{few_items}
dependent_steps chain:* op:* steps:1,4,16 m:16 n:{few}
dependent_steps chain:* op:madd,hash steps:4,16 m:256 lsize_0:64 n:{few_items}
private_array start:same access:* words:512,1024 m:256 lsize_0:64 n:{few_items}
special_functions dtype:* form:plain function:* m:64 n:{few},{some}
special_functions form:native,relaxed function:* m:64,256 n:{few},{some}
constant_lookups table:* place:* span:* m:16,64 n:{few},{some}
image_reads channels:* dtype:* rows:1,3,5 columns:1,3,5 n:{images}
image_reads channels:1 rows:3 columns:3,5 lsizes:32x8,64x4,8x8 n:{images}
sparse_rows storage:* columns:far lengths:* dtype:float32 span:262144 m:8,32 n:{rows}
sparse_rows storage:* columns:far lengths:even dtype:float64 span:262144,4194304 m:32 n:{of_doubles}
sparse_rows storage:* columns:far lengths:even dtype:float32 span:16384,4194304 m:32 n:{of_doubles}
row_passes walk:groups passes:1,2,4 m:1024,16384,131072 n:{of_passes}
row_passes walk:items passes:1,2,4 m:64,1024 n:{of_passes}
"""
SIZES_OF_EVERYDAY = {
    True: {
        "few_items": "2^13,2^15",
        "few": "2^18",
        "some": "2^20",
        "spans": "1024,16384,262144,4194304,67108864",
        "images": "1024,2048",
        "rows": "2^15,2^17,2^19",
        "of_doubles": "2^17",
        "of_passes": "2^14,2^16,2^18",
    },
    False: {
        "few_items": "2^9,2^11",
        "few": "2^14",
        "some": "2^16",
        "spans": "1024,16384,262144,4194304",
        "images": "256,512",
        "rows": "2^11,2^13,2^15",
        "of_doubles": "2^13",
        "of_passes": "2^9,2^11,2^13",
    },
}
LOADED_BYTES = 2.2e5
"""Bytes that a first-level cache of 256 KB keeps of loads, beside local memory; measured times say it only roughly."""
L2_PORT = 64
"""Bytes at most that a compute unit takes from the second-level cache in a clock."""


def peaks_of(device: Device | None) -> dict[str, float]:
    """Returns the bytes per second that a device's memory and second-level cache can move at most; none of a device
    whose specification is not known."""
    facts = facts_called(device.name) if device else None
    if facts is None or facts.kind != "gpu":
        return {}
    return {"p_dram": facts["dram_bandwidth"], "p_l2_load": L2_PORT * facts["units"] * facts["clock"]}


def sent_of(device: Device | None) -> dict[str, float]:
    """Returns the seconds for a line of those that stores and atomics send: a line a clock and compute unit, as atomics
    of few work-groups have it to 3 %. Stores are limited by later stages too, so that fits tell both apart badly."""
    facts = facts_called(device.name) if device else None
    if facts is None or facts.kind != "gpu":
        return {}
    return {"p_l1_store": 1 / (facts["units"] * facts["clock"])}


def room_of(device: Device | None) -> dict[str, float]:
    """Returns what a compute unit of a device has room for at a time; an H200's where the device does not tell."""
    try:
        limits = limits_of_device(device) if device else None
    except DeviceError:
        limits = None
    if limits is None:
        return dict(ROOM)
    items = limits.waves * limits.wave_sizes[0]
    return dict(zip(ROOM, (items, limits.groups, limits.registers, limits.local_bytes), strict=True))


class Gpu(Recipe):
    """One model for kernels of any kind, predicted from their source.

    It is calibrated with the kernels of `UnifiedPlus` and `CacheAware`, and with some of what programs do beside; and
    judged by the test kernels of the one and the random kernels of the other, none of whose families it has seen.
    """

    name = "gpu"
    summary = "the model of any kernel on a GPU, from its source as a compiler leaves it"
    models: ClassVar = {"gpu": MODEL}
    meanings: ClassVar = {"gpu": MEANINGS}
    ranked = False
    baselines = False
    published = Unified.published

    def measurement_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        sizes = sizes_for(seconds_of)
        is_large = sizes is LARGE
        return [
            *measurement_classes(sizes).values(),
            *tag_filters(FILTERS, SIZES[is_large]),
            *characterization(is_large),
            *tag_filters(EVERYDAY, SIZES_OF_EVERYDAY[is_large]),
        ]

    def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        sizes = sizes_for(seconds_of)
        return [*evaluation_kernels(sizes).values(), *random_kernels(sizes is LARGE)]

    def fit_options(self, model: str, device: Device | None) -> Mapping[str, Any]:
        capacities = {
            "p_cache": {"value": 4e7, "min": 1e6, "max": 8e7},
            "p_near_scratch": {"value": 2e5, "min": 2e4, "max": 3e5},
            "p_near_loaded": LOADED_BYTES,
            "p_near_constant": {"value": 2500, "min": 2048, "max": 4096},
            "p_wait_scratch": {"value": 2e-8, "min": 5e-9, "max": 6e-8},
            "p_wait_near": {"value": 2e-8, "min": 1e-8, "max": 2.8e-8},
            "p_wait_load": {"value": 2e-7, "min": 5e-8, "max": 1e-6},
            "p_wait_dram": {"value": 2e-7, "min": 5e-8, "max": 1e-6},
            "p_wait_local": {"value": 1.5e-8, "min": 5e-9, "max": 6e-8},
            "p_wait_op": {"value": 2.2e-9, "min": 1e-9, "max": 6e-9},
            "p_wait_double": {"value": 4e-9, "min": 1e-9, "max": 2e-8},
            "p_wait_slow": {"value": 2e-8, "min": 5e-9, "max": 2e-7},
            "p_mma": 1 / MULTIPLICATIONS,
            "p_fence": 1 / FENCES,
            "p_wait_fence": WAIT_FOR_FENCE,
            "p_apart": 1.0,
            "p_moved": 1.0,
            **sent_of(device),
            **room_of(device),
        }
        bandwidths = {parameter: {"min": 1 / peak} for parameter, peak in peaks_of(device).items()}
        return {"parameters": {**options(device)["parameters"], **capacities, **bandwidths}, "residuals": "logarithmic"}

    def label(self, kernel: Kernel) -> str:
        return LABELS.get(kernel.name) or set_of(kernel)
