"""Says what the GPU model's waits stand for, and what an H100 or an H200 has; see `perfmodel.models.gpu_parameters`."""

from __future__ import annotations

from typing import Any

from perfmodel.modelling.meaning import Meaning, Physical
from perfmodel.models.gpu_terms import FILLED, LESS_SCRATCH, ONE_BY_ONE, PARALLEL

LUO = "Luo et al. 2024, an H100"
WAITS = "f_mem_waits_global_granularity:longest / f_work_items"
FEWER_FENCES = (
    "fewer fences would help: atomics that order nothing else (relaxed), or one fence for all that a work-group stores"
)
BY_RULES = "how many loads are under way together follows from rules, not from the machine code"


def _wait(name: str, low: float, high: float) -> dict[str, Any]:
    """Returns how a latency reads, beside cycles that were published."""
    cycles = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return {
        "reads": {"{:.3g} ns": f"1e9 * {name}"},
        "physical": {"H200": Physical(low / 1.98, high / 1.755, f"{LUO}: {cycles} cycles")},
    }


WAITING: dict[str, Meaning] = {
    "p_phase": Meaning(
        "a work-group's wait at a barrier for its loads",
        reads={"{:.3g} ns": "1e9 * p_phase"},
        physical={"H200": Physical(242, 273, f"{LUO}: 478.8 cycles to memory")},
        lacks="the barrier itself, and the time until its last sub-group is there",
    ),
    "p_wave": Meaning(
        "a wave's wait for its first load",
        reads={"{:.3g} ns": "1e9 * p_wave"},
        physical={"H200": Physical(242, 273, f"{LUO}: 478.8 cycles to memory")},
        lacks="starting and ending work-items, and queues before memory while a whole wave asks at once",
    ),
    "p_wait_scratch": Meaning(
        "waits for private arrays that lie in memory",
        {"{:.3g} in each work-item": "f_mem_waits_scratch_granularity:longest / f_work_items"} | FILLED,
        LESS_SCRATCH,
        **_wait("p_wait_scratch", 40.7, 40.7),
    ),
    "p_wait_near": Meaning(
        "waits for loads that the first-level cache has, one after another",
        {"{:.3g} in each work-item": WAITS} | FILLED,
        PARALLEL,
        lacks=BY_RULES,
        **_wait("p_wait_near", 40.7, 40.7),
    ),
    "p_wait_load": Meaning(
        "waits for loads that the first-level cache has not, one after another",
        {"{:.3g} in each work-item": WAITS} | FILLED,
        PARALLEL,
        lacks=BY_RULES,
        **_wait("p_wait_load", 222.3, 222.3),
    ),
    "p_wait_dram": Meaning(
        "waits for loads from memory that come one after another",
        {"{:.3g} in each work-item": WAITS} | FILLED,
        PARALLEL,
        lacks=BY_RULES,
        **_wait("p_wait_dram", 215.8, 215.8),
    ),
    "p_wait_local": Meaning(
        "waits for local memory",
        {"{:.3g} in each work-item": "f_mem_waits_local_granularity:longest / f_work_items"} | FILLED,
        PARALLEL,
        lacks=BY_RULES,
        **_wait("p_wait_local", 29, 29),
    ),
    "p_wait_op": Meaning(
        words="operations that wait for the result of one before",
        figures={"{:.3g} in a row": f"{ONE_BY_ONE} / f_work_items"} | FILLED,
        advice="several sums side by side in each work-item, native_ functions, or more work-items, would help",
        reads={"{:.3g} ns": "1e9 * p_wait_op"},
        physical={"H200": Physical(4 / 1.98, 4 / 1.755, "4 cycles on Volta, Jia et al., arXiv:1804.06826")},
    ),
    "p_wait_double": Meaning(
        "operations in double precision that wait for their own result",
        FILLED,
        "several sums side by side in each work-item, or more work-items, would help",
        {"{:.3g} ns": "1e9 * p_wait_double"},
    ),
    "p_wait_slow": Meaning(
        "divisions and functions that wait for their own result",
        FILLED,
        "several independent ones side by side in each work-item, native_ functions, or more work-items would help",
        {"{:.3g} ns": "1e9 * p_wait_slow"},
    ),
    "p_fence": Meaning(
        words="fences, and accesses that release or acquire, beyond a work-group",
        figures={"{:.3g} in each work-item": "f_sync_fence / f_work_items"},
        advice=FEWER_FENCES,
        reads={"{:.3g} G sub-groups/s": "1e-9 / p_fence"},
        physical={"H200": Physical(22, 46, "benchmarks.fences")},
    ),
    "p_wait_fence": Meaning(
        words="waits at fences beyond a work-group for all accesses before",
        figures={"{:.3g} in each work-item": "f_sync_fence / f_work_items"} | FILLED,
        advice=FEWER_FENCES,
        reads={"{:.3g} ns": "1e9 * p_wait_fence"},
        physical={"H200": Physical(180, 500, "benchmarks.fences")},
    ),
}
