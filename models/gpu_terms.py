"""Says what the GPU model's terms stand for, and what to change where one limits."""

from __future__ import annotations

from perfmodel.modelling.meaning import Meaning
from perfmodel.models.unified_plus import FAST
from perfmodel.sass.pipes import CYCLES

# What the busiest compute unit has to do, against the mean: whole work-groups, at least the one with the longest loops.
BUSY = "max(ceil(shared_out), longest, shared_out + strayed) / shared_out"
IN_A_ROW = 1.107
"""Four cycles of an H200's schedulers at 1.98 GHz, relative to what `p_wait_op` is where kernels are counted by their
source; measured by `benchmarks.warps_alone`, as no generator is counted by machine code."""
# Operations that come one after the other: as many as take a sub-group's time in machine code; where that is not known,
# on what loops carry on, on what each iteration loads, and within functions that are called.
ONE_BY_ONE = f"""\
({IN_A_ROW} * f_issue_alone + (1 - f_issue_known) * ({FAST}
             + f_op_int32_carried_granularity:longest + f_op_uint32_carried_granularity:longest
             + f_mem_depth_global_granularity:longest + f_mem_depth_local_granularity:longest
             + 32 * called / p_f32))"""

SLOTS = "min(f_work_items / p_units, resident) / p_resident_items"
FILLED = {"{:.2g} % of the slots for work-items filled": f"100 * {SLOTS}"}
SORTED = "places sorted so that neighbouring work-items read near each other, or smaller tables, would help"
LESS_SCRATCH = (
    "private arrays that are small and whose indices are known once loops are unrolled stay in registers, or local "
    "memory in their place, would help"
)
MORE_LOADS = "several independent loads in each work-item, issued before the first is used, would help"
PARALLEL = {
    "more work-items, or several independent loads in each, would help": f"0.99 - {SLOTS}",
    MORE_LOADS: "",
}

TERMS: dict[str, Meaning] = {
    "transfer": Meaning(
        "copies between host and device",
        {"{:si}B to the device": "f_transfer_bytes_to", "{:si}B back": "f_transfer_bytes_from"},
        "arrays that stay on the device from launch to launch would help",
    ),
    "launch": Meaning(
        "the launch itself",
        {"{:si} work-items": "f_work_items"},
        "more work in one launch would help: a larger problem, or several kernels in one",
    ),
    "asked": Meaning(
        "sub-groups that ask texture units how large images are, one after the other",
        {"{:si} times": f"f_issue_query / {CYCLES['query']}"},
        "images' sizes as arguments of the kernel would help",
    ),
    "groups": Meaning(
        "work-groups that are started one after the other",
        {
            "{:si} work-groups": "f_thread_groups",
            "{:.4g} work-items in each": "f_work_items / f_thread_groups",
        },
        "larger work-groups, or several elements for each work-item, would help",
    ),
    "group": Meaning("work-items of a work-group"),
    "slots": Meaning("places for work-items that a work-group takes, in whole sub-groups"),
    "idle": Meaning("places of whole sub-groups over those of sub-groups of 32, as idle lanes take as long as others"),
    "moved": Meaning("words that a work-item holds for sums which the compiler moves to where they are stored"),
    "words": Meaning("words that a work-item holds beyond the registers that compilers give it"),
    "room": Meaning(
        "work-groups that a compute unit has room for, by what they hold of its registers and local memory"
    ),
    "resident": Meaning("work-items that a compute unit holds at a time, where there are enough"),
    "together": Meaning("work-items that run at a time on all compute units"),
    "shared_out": Meaning("work-groups of each compute unit"),
    "strayed": Meaning(
        "work-groups, as many as are done meanwhile, that the busiest compute unit is behind the others"
    ),
    "longest": Meaning("loads in a row, or else instructions, of the work-group with the longest loops, over the mean"),
    "loads": Meaning("loads from global memory that sub-groups issue"),
    "turns": Meaning("what work-items wait for, each by itself, so many at a time as there is room for"),
    "known": Meaning("1 where machine code says what is issued, as of CUDA where NVIDIA's assembler is installed"),
    "pipes": Meaning("cycles of the busiest pipe, or of the schedulers, by machine code"),
    "told": Meaning("instructions that sub-groups issue, each at its price, by the source or PTX"),
    "issued": Meaning("instructions that sub-groups issue"),
    "compute": Meaning(
        "instructions that compute units issue",
        {"{:.3g} times the mean on the busiest": f"{BUSY} / step({BUSY} - 1.1)"},
        {
            "work shared out more evenly would help: more and smaller work-groups, or loops of equal length": (
                f"{BUSY} - 1.3"
            ),
            "fewer instructions would help: wider loads, unrolled loops, addresses computed once": "",
        },
    ),
    "lines": Meaning("cycles of the first-level caches, by the lines and banks that loads and stores go to"),
    "local": Meaning("cycles of local memories"),
    "lookups": Meaning("cycles of the caches of constant memory"),
    "fetched": Meaning("cycles of the first-level caches"),
    "l1": Meaning("cycles of the first-level caches and local memories"),
    "tensor": Meaning("products of matrices on tensor cores"),
    "private": Meaning("bytes of a work-item's private arrays in memory, and of what registers have no room for"),
    "own": Meaning("private arrays of the work-items that run at a time, by what the first-level cache keeps of them"),
    "jumped": Meaning(
        "bytes of single sectors that loads bring from memory, at places that jump about, and in later iterations, as "
        "neither cache has kept them"
    ),
    "restored": Meaning("bytes of sectors that stores come back to once the last-level cache has lost them"),
    "lone": Meaning("the part of the sectors that sub-groups store to at a time which are alone in their lines"),
    "parted": Meaning("sectors that work-groups store to at once, where these are more than their bytes fill"),
    "stepped": Meaning("stored sectors but those that lie anywhere, of each no more than so many steps that fill it"),
    "changed": Meaning("the part of stored sectors that the same work-items have just loaded"),
    "begun": Meaning("bytes of the lines that all that run at a time load from and store to at once"),
    "torn": Meaning("sectors that a store of a sub-group goes to beyond those that its bytes fill"),
    "stores": Meaning("stores of each work-item"),
    "joined": Meaning("sectors that the next sub-group fills up, some time after the first one"),
    "later": Meaning("sectors that memory has taken before the store that fills them up"),
    "strewn": Meaning(
        "bytes of single sectors that stores at places that jump about take to memory, and of those that are filled by "
        "one store after another"
    ),
    "spilled": Meaning("bytes of private arrays that loads bring again, as the first-level cache has not kept them"),
    "written": Meaning("bytes of private arrays that stores write through to the second-level cache"),
    "held": Meaning("private arrays of the work-items that run at a time, by what the last-level cache keeps of them"),
    "beyond": Meaning("the part of the private arrays that the last-level cache does not keep"),
    "brought": Meaning("distinct bytes that are loaded, but of arrays that were stored before, in blocks of 64"),
    "taken": Meaning("what work-groups load, each for itself"),
    "unit": Meaning("bytes that the work-groups of a compute unit that run at a time load"),
    "lost": Meaning("the part of them that its first-level cache does not keep"),
    "again": Meaning("bytes that are loaded again, in another pass, and that the first-level cache has lost"),
    "reused": Meaning("what the work-groups that run at a time load, and once what they have in common"),
    "walked": Meaning(
        "the lines that a compute unit's sub-groups touch in a round, by what its first-level cache keeps"
    ),
    "evicted": Meaning("the part of what iterations ask for again that this cache has lost meanwhile"),
    "further": Meaning("what all that run at a time load, by what the last-level cache keeps of it"),
    "open": Meaning("sectors that all that run at a time load from and store to at once"),
    "gone": Meaning("the part of them that the last-level cache does not keep until the next iteration"),
    "met": Meaning(
        "atomics on the busiest 512 bytes: where work-groups walk through an array, of those that run at a time"
    ),
    "contend": Meaning(
        "atomics and stores to one place, done one after the other",
        {
            "{:si} of them on the busiest 512 bytes": (
                "f_mem_contended_global_atomic_block:512 + f_mem_contended_global_store_block:512"
            )
        },
        "results combined in local memory or sub-groups first, or spread over several places, would help",
    ),
    "tries": Meaning(
        "rounds of comparisons and exchanges, in each of which one work-item succeeds and all others ask again",
        {"{:si} rounds": "f_mem_retries_global"},
        "results combined in local memory or sub-groups first, or spread over several places, would help",
    ),
    "l2": Meaning("what the second-level cache, which all compute units share, has to do"),
    "phases": Meaning(
        "work-groups that wait at barriers for what they load into local memory",
        {
            "{:.3g} times in each work-item": (
                "min(f_mem_rounds_global, f_mem_rounds_local_store, f_sync_barrier_local) / f_work_items"
            ),
            "{:.3g} work-groups at a time on a compute unit": "max(floor(room), 1)",
        },
        "more work from barrier to barrier (larger tiles), or the next tile's loads before it, would help",
    ),
    "waves": Meaning(
        "waits for the first loads of each wave of work-items",
        {"{:.3g} waves": "f_work_items / p_units / resident"},
        {
            "several elements for each work-item, loaded together, would help": "f_work_items - resident * p_units",
            "only a shorter way to the first load would help: fewer addresses read from memory": "",
        },
    ),
    "filled": Meaning("all lines of data that the launch touches, by what the last-level cache keeps"),
    "missed": Meaning("the part of all data that the last-level cache does not keep"),
    "filling": Meaning("bytes of sectors that stores go to"),
    "sparse": Meaning("the part of the lines that stores go to whose neighbours no store touches"),
    "apart": Meaning("bytes of sectors that stores go to, each alone in a pair of lines"),
    "stored": Meaning("bytes that stores take to memory side by side, in blocks of 64"),
    "unfilled": Meaning("bytes of sectors that stores go to, and that no store of the launch fills"),
    "scatter": Meaning(
        "sectors that memory brings one by one for scattered loads, or takes of scattered stores",
        {"{:si}B of them": "scatter / p_scatter"},
        SORTED,
    ),
    "dram": Meaning("bytes that memory brings or takes"),
    "whole": Meaning("the part of the sectors that are fresh to an iteration which the work-group has not had before"),
    "fresh": Meaning("waits for sectors that the work-group has not had before, of the longest work-item"),
    "far": Meaning("waits for loads that the first-level cache has not, of the longest work-item"),
    "shared": Meaning("how much of what work-groups load comes from memory for them, not for others before"),
    "called": Meaning("instructions of functions that are called, each at its price"),
    "waits": Meaning("what the longest work-item waits for, times the work-items"),
    "latency": Meaning(
        "what work-items wait for: the longest by itself, or all in turn where few run at a time", FILLED, PARALLEL
    ),
    "supply": Meaning("what caches and memory take, and atomics that meet, which slow each other"),
    "work": Meaning("what is computed, and what caches and memory do meanwhile"),
}
