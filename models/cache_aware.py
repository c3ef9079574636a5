"""The cache-aware static model as published (Pöppl and Herz, UCHPC 2015): a time from source, sizes and a device.

Everything that a prediction needs follows from the source as a compiler leaves it, see `Kernel.as_compiled`. What we
make of it is in `perfmodel.models.gpu`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from perfmodel.device import Device
from perfmodel.kernels.kernel import Kernel
from perfmodel.models.unified import LARGE, sizes_for
from perfmodel.models.unified_plus import GROUPS, sum_of
from perfmodel.recipes.recipe import Recipe, TagFilter, tag_filters


def _typed(dtypes: str, kinds: str, index: bool = False) -> list[str]:
    return [f"{dtype}_{kind}" + ("_index" if index else "") for dtype in dtypes.split() for kind in kinds.split()]


SIMPLE = "add mul madd shift bitwise min max compare abs"
OPERATIONS: dict[str, list[str]] = {
    **{name: list(kinds) for name, kinds in GROUPS.items() if name not in ("p_i32", "p_i32_div")},
    "p_i32": _typed("int32 uint32", SIMPLE),
    "p_i32_div": [*_typed("int32 uint32", "div mod"), *_typed("int32 uint32", "div mod", index=True)],
    # Of either width: compilers turn most of the wide ones into narrow ones, or into steps of pointers.
    "p_index": _typed("int32 uint32 int64 uint64", SIMPLE, index=True),
    "p_i64": _typed("int64 uint64", "add shift bitwise min max compare abs"),
    "p_i64_mul": _typed("int64 uint64", "mul madd"),
    "p_i64_div": [*_typed("int64 uint64", "div mod"), *_typed("int64 uint64", "div mod", index=True)],
    "p_convert": _typed("float32 float64", "convert"),
}

# --- as published

ACCESS = "f_mem_access_global_{direction}_class:{kind}"
CLASSES = ("continuous", "constant", "interval", "identical", "complex")
# W(n) saturates for the operations that all kernels have; of others there are as many as a line of source has.
SATURATING = {"float": "p_f32", "division": "p_f32_div", "integer": "p_index", "quotient": "p_i32_div"}
N_SATURATED = 8.0


def _cost(name: str, parameter: str) -> str:
    n = f"{sum_of(OPERATIONS[parameter])} / f_work_items"
    own = ", ".join(f"p_{name}_{part}" for part in ("a", "b", "c", "slope", "base", "saturated"))
    return f"step({n} - 0.5) * saturating(max({n}, 0.001), {own}) * f_work_items"


def _published(accesses: str) -> str:
    others = [parameter for parameter in OPERATIONS if parameter not in SATURATING.values()]
    return "\n".join(
        [
            "transfer = p_to * f_transfer_bytes_to + p_to_latency * f_transfers_to + p_from * f_transfer_bytes_from"
            " + p_from_latency * f_transfers_from",
            "base = p_base_fixed * f_sync_kernel_launch + p_base * f_work_items",
            "operations = " + " + ".join(_cost(name, parameter) for name, parameter in SATURATING.items()),
            "others = " + " + ".join(f"{p} * {sum_of(OPERATIONS[p])}" for p in others),
            f"accesses = {accesses}",
            "onchip = p_local_load * f_mem_access_local_load + p_local_store * f_mem_access_local_store"
            " + p_barrier * f_sync_barrier_local",
            "utilization = group_utilization(f_work_items / f_thread_groups, p_lanes)",
            "transfer + (base + operations + others + accesses + onchip) / utilization",
        ]
    )


AWARE = _published(
    " + ".join(
        f"p_{direction}_{kind} * {ACCESS.format(direction=direction, kind=kind)}"
        for direction in ("load", "store")
        for kind in CLASSES
        if direction == "load" or kind in ("continuous", "complex")
    )
)
UNAWARE = _published("p_load * f_mem_access_global_load + p_store * f_mem_access_global_store")

# --- kernels

# The device's characterization, by what it shows. Braces stand for sizes.
MICROBENCHMARKS = """\
straight_operations op:add,mul,madd,div,sqrt,rsqrt,exp,log,sin m:1,4,16,64 chains:1 n:{few},{many},{most}
straight_operations op:add,mul,madd,div,sqrt,exp m:4,16,64 chains:4 n:{few},{many},{most}
straight_operations dtype:float64 op:add,mul,madd,div,sqrt,exp m:1,4,16,64 chains:1 n:{few},{many}
straight_operations dtype:int32,uint32 op:add,mul,madd,div,mod m:1,4,16 chains:1 n:{few},{many},{most}
straight_operations dtype:int32,uint32 op:add,mul,madd,div,mod m:4,16 chains:4 n:{many}
throughput dtype:int64 op:add,mul,madd,div n:{few} m:32,64
access_classes access:{classes} m:1,2,4,8,16 axes:1 n:{some},{many}
access_classes access:row_interval,continuous,interval m:1,2,4,8,16 axes:2 n:{some},{many},{most}
access_classes access:continuous,interval,same,constant,identical m:1,4,16 n:{most}
access_classes access:complex window:{windows} m:1,2,4 n:{some},{many}
access_classes access:complex window:1024,16384,262144 m:1,2,4,8,16 n:{some},{many},{most}
access_classes access:complex window:{far_windows} m:1,2,4 n:{most}
access_classes access:complex window:65536,131072,1048576 m:1,4,16 n:{some},{many}
access_classes access:complex dtype:float64 window:262144,4194304,16777216 m:1,4 n:{some},{many}
access_classes access:complex direction:store window:{far_windows} m:1,2 n:{some},{many}
access_classes access:strided stride:2,32 m:1,2,4 n:{some},{many}
access_classes direction:store access:continuous,same,strided,complex,local m:1,2,4,8 n:{some},{many}
access_classes dtype:float64 access:{classes} m:1,4 n:{some},{many}
access_classes access:continuous,complex,interval lsize_0:64,512 m:1,4,16 n:{many}
index_arithmetic op:* operand:* by:1000,1024,7 m:1,4,8 n:{many},{most}
work_group_size lsize_0:* n:{some},{many},{most}
vector_add transfers:True n:2^10,2^12,2^14,2^16,2^18,2^20,2^22,2^24,{copied}
global_copy transfers:True loads:1,2,4 n:2^10,2^14,2^16,2^18,2^20,2^22,2^24,{copied}
access_classes transfers:True direction:store m:1,2,4,8 n:2^20,2^22
"""
CLASS_TAGS = "continuous,constant,interval,row_interval,same,identical,strided,complex,local"
COUNTS = {
    True: {
        "few": "2^18",
        "some": "2^20",
        "many": "2^22",
        "most": "2^24",
        "windows": "8388608,16777216,33554432,67108864",
        "far_windows": "16777216,67108864",
        "copied": "2^26",
    },
    False: {
        "few": "2^14",
        "some": "2^16",
        "many": "2^18",
        "most": "2^20",
        "windows": "4194304,8388608",
        "far_windows": "8388608",
        "copied": "2^25",
    },
}
SETS = ("realistic", "unrestricted")
SEEDS = "1..1000"
SIDE = {True: 4096, False: 1024}


def characterization(is_large: bool) -> list[TagFilter]:
    """Returns filters of the kernels that a device is characterized with, for a fast device or a slow one."""
    return tag_filters(MICROBENCHMARKS, {"classes": CLASS_TAGS, **COUNTS[is_large]})


def random_kernels(is_large: bool) -> list[TagFilter]:
    """Returns filters of both sets of random kernels, and of the slides' example."""
    side = SIDE[is_large]
    random = [["random_expression", f"set:{name}", f"seed:{SEEDS}", f"n:{side}"] for name in SETS]
    return [*random, ["sq_mod", f"m:{side // 4},{side}", f"n:{side // 4},{side}"]]


def set_of(kernel: Kernel) -> str:
    """Returns the set that a random kernel belongs to; the name of any other."""
    return kernel.tags.get("set", kernel.name)


class CacheAware(Recipe):
    """Random kernels, predicted from their source as published: without and with classes of accesses."""

    name = "cache-aware"
    summary = "random kernels from their OpenCL C alone, by classes of accesses (Pöppl and Herz)"
    models: ClassVar = {"simple": UNAWARE, "classes": AWARE}
    ranked = False
    baselines = False

    def measurement_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        return characterization(sizes_for(seconds_of) is LARGE)

    def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        return random_kernels(sizes_for(seconds_of) is LARGE)

    def fit_options(self, model: str, device: Device | None) -> Mapping[str, Any]:
        held: dict[str, Any] = {f"p_{name}_saturated": N_SATURATED for name in SATURATING}
        held |= {f"p_{name}_b": (0.3, 2.0) for name in SATURATING}  # as 0 would make a and c one parameter
        return {"parameters": {"p_lanes": 32.0, **held}, "residuals": "logarithmic"}

    def label(self, kernel: Kernel) -> str:
        return set_of(kernel)
