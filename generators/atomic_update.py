"""Atomic updates of counters in global or local memory, from one that all want to many that hardly anybody shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import choice, number, size, work_group
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

# Knuth's multiplicative hash, its upper half folded onto the lower one.
PLACES = {"hashed": "hash(i * m + k)", "neighbours": "i + k"}

HASH = """\
uint hash(uint x)
{
    x *= 2654435761u;
    return x ^ (x >> 15);
}

"""
GLOBAL = (
    HASH
    + """\
__kernel void atomic_update(__global uint *counters, const uint m, const uint n)
{
    const uint i = get_global_id(0);
    for (uint k = 0; k < m; ++k)
        UPDATE(&counters[(PLACE) & (COUNTERS - 1)]);
}
"""
)
LOCAL = (
    HASH
    + """\
__kernel void atomic_update(__global uint *counters, const uint m, const uint n)
{
    __local uint own[COUNTERS];
    const uint i = get_global_id(0);
    for (uint c = get_local_id(0); c < COUNTERS; c += LSIZE)
        own[c] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < m; ++k)
        UPDATE(&own[(PLACE) & (COUNTERS - 1)]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint c = get_local_id(0); c < COUNTERS; c += LSIZE)
        counters[get_group_id(0) * COUNTERS + c] = own[c];
}
"""
)
UPDATES = {"add": "atomic_add({}, k + 1)", "max": "atomic_max({}, i)"}
MOST_LOCAL = 2048


class AtomicUpdate(KernelGenerator):
    """Each work-item updates m counters, that of its neighbour's neighbour or one that a hash chooses.

    One counter is what all work-items contend for; with as many as the device has work-items, they are apart.
    """

    name = "atomic_update"
    summary = "atomic updates of few or many counters, in global or local memory"
    source = "histograms, queues and hash tables of everyday programs"
    limits = "more than 2048 counters in local memory"
    tags = (
        choice("space", "memory that the counters lie in", "global", "local"),
        choice("place", "which counter an update is of", *PLACES),
        choice("op", "what an update does", *UPDATES),
        number(
            "counters", "counters, a power of two; of each work-group, if they are local", 1, 32, 1024, 2**16, 2**22
        ),
        size("m", "updates of a work-item", 1, 4, 16),
        *work_group(256),
        size("n", "work-items", 2**16, 2**18, 2**20),
    )
    checks = (
        ("space:*", "place:*", "op:*", "counters:1,32,1024", "m:1,4", "lsize_0:64", "n:256"),
        ("space:global", "place:*", "op:*", f"counters:{2**16},{2**22}", "m:16", "n:512"),
        ("space:*", "op:*", "lsize_0:64,128,256,512", "m:16", "n:1024"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize, counters, is_local = int(variant["lsize_0"]), int(variant["counters"]), variant["space"] == "local"
        update = UPDATES[variant["op"]].format("place")
        return OpenCLProgram(
            LOCAL if is_local else GLOBAL,
            self.name,
            "n",
            lsize,
            [
                Array("counters", "uint32", f"n // {lsize} * {counters}" if is_local else counters, is_output=True),
                Scalar("m", "uint32"),
                Scalar("n", "uint32"),
            ],
            [
                f"-DUPDATE(place)={update.replace(' ', '')}",
                f"-DPLACE={PLACES[variant['place']].replace(' ', '')}",
                f"-DCOUNTERS={counters}",
                f"-DLSIZE={lsize}",
            ],
            f"n % {lsize} == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        counters = int(variant["counters"])
        return counters & (counters - 1) == 0 and (variant["space"] == "global" or counters <= MOST_LOCAL)

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        sizes, tags = kernel.sizes, kernel.tags
        n, m, counters, lsize = int(sizes["n"]), int(sizes["m"]), int(tags["counters"]), int(tags["lsize_0"])
        item, step = np.meshgrid(np.arange(n, dtype=np.uint32), np.arange(m, dtype=np.uint32), indexing="ij")
        if tags["place"] == "hashed":
            place = (item * np.uint32(m) + step) * np.uint32(2654435761)
            place ^= place >> np.uint32(15)
        else:
            place = item + step
        place = (place & np.uint32(counters - 1)).astype(np.int64)
        is_local = tags["space"] == "local"
        if is_local:
            place += item.astype(np.int64) // lsize * counters
        values = step + np.uint32(1) if tags["op"] == "add" else item
        found = np.zeros(n // lsize * counters, np.uint32) if is_local else arrays["counters"].copy()
        (np.add if tags["op"] == "add" else np.maximum).at(found, place.ravel(), values.ravel())
        return {"counters": found}
