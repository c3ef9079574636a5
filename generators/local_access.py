"""Data moved through local memory at a stride (journal version of the slides, measurement kernels)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, choice, number, size, work_group
from perfmodel.kernels.kernel import Kernel

LOCAL_BYTES = 32 << 10
# A round is two iterations of eight unrolled accesses. What every round repeats, a compiler would keep in registers: it
# does not know how many iterations there are. Neighbouring elements it would join to vectors: it is given every second.
TURNS, UNROLLED, GAP = 2, 8, 2
ACCESSES = TURNS * UNROLLED
WINDOW = GAP * (ACCESSES - 1) + 1

FILL = """
        for f
            source[{lsize}*f + l] = x {{id=fill, dep=x}}
        end
"""
# Work-items store to each other's elements; what they store there is the same for all.
BODIES = {
    "load": f"""
        <> x = a[{{lsize}}*g + l] {{{{id=x}}}}
        <> total = x {{{{id=start, dep=x}}}}
        {FILL}
        for k, turn, j
            total = total + source[{{place}}] {{{{id=step, dep=start:fill}}}}
        end
        out[{{lsize}}*g + l] = total {{{{dep=step}}}}
    """,
    "store": """
        <> x = a[{lsize}*g] {{id=x}}
        for k, turn, j
            target[{place}] = x {{id=step, dep=x}}
        end
        out[{lsize}*g + l] = target[{stride}*l] {{dep=step}}
    """,
    "copy": f"""
        <> x = a[{{lsize}}*g + l] {{{{id=x}}}}
        {FILL}
        for k, turn, j
            target[{{place}}] = source[{{place}}] {{{{id=step, dep=fill}}}}
        end
        out[{{lsize}}*g + l] = target[{{stride}}*l] {{{{dep=step}}}}
    """,
}


class LocalAccess(KernelGenerator):
    """Every work-item does m rounds of 16 accesses, each of them a stride away from its neighbours'."""

    name = "local_access"
    summary = "local memory accessed at a stride"
    source = "journal version of the 2018 slides, measurement kernels"
    limits = "arrays in local memory of more than 32 KiB"
    tags = (
        DTYPE,
        choice("direction", "loads (which are summed), stores, or a load and a store each", *BODIES),
        number("lstride_0", "elements from one work-item's access to the next", 0, 1, 2, 3, 4, 8, 16, 32, default=1),
        *work_group(256),
        size("n", "work-items", 2**18, 2**20),
        size("m", f"rounds of {ACCESSES} accesses", 64, 256),
    )
    checks = (
        ("lstride_0:0,1,3,16", "lsize_0:64", "n:64,192", "m:1,5"),
        ("dtype:float32", "lstride_0:2,4,8,32", "lsize_0:64", "n:128", "m:3"),
        ("dtype:float32", "lsize_0:128,256,512", "n:1024", "m:3"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        lsize, stride = int(variant["lsize_0"]), int(variant["lstride_0"])
        elements = _elements(lsize, stride)
        place = f"{stride}*l + {GAP * UNROLLED}*turn + {GAP}*j"
        body = BODIES[variant["direction"]].format(lsize=lsize, stride=stride, place=place)
        arrays = [name for name in ("source", "target") if name in body]
        program = lp.make_kernel(
            [
                f"{{[g, l]: 0 <= g < n/{lsize} and 0 <= l < {lsize}}}",
                f"{{[k, turn, j]: 0 <= k < m and 0 <= turn < turns and 0 <= j < {UNROLLED}}}",
                f"{{[f]: 0 <= f < {elements // lsize}}}",
            ],
            f"for g, l\n{body}\nend",
            [
                lp.GlobalArg("a", dtype, shape="n"),
                lp.GlobalArg("out", dtype, shape="n", is_input=False),
                *(
                    lp.TemporaryVariable(name, dtype, shape=elements, address_space=lp.AddressSpace.LOCAL)
                    for name in arrays
                ),
                lp.ValueArg("n, m, turns", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1 and n mod {lsize} = 0 and m >= 1 and 1 <= turns <= {TURNS}",
            silenced_warnings=["write_race(step)"],
            lang_version=(2018, 2),
        )
        program = lp.tag_inames(program, {"g": "g.0", "l": "l.0", "j": "unr"})
        return lp.prioritize_loops(program, "k,turn,j")

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        elements = _elements(int(variant["lsize_0"]), int(variant["lstride_0"]))
        arrays = 2 if variant["direction"] == "copy" else 1
        return arrays * elements * np.dtype(variant["dtype"]).itemsize <= LOCAL_BYTES

    def arguments(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> Mapping[str, float]:
        return {**sizes, "turns": TURNS}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        lsize, stride = int(kernel.tags["lsize_0"]), int(kernel.tags["lstride_0"])
        x = arrays["a"].reshape(-1, lsize)
        if kernel.tags["direction"] == "store":
            return {"out": np.repeat(x[:, 0], lsize)}
        # The source repeats the group's elements.
        first = stride * np.arange(lsize)
        if kernel.tags["direction"] == "copy":
            return {"out": x[:, first % lsize]}
        places = first[:, None] + GAP * np.arange(ACCESSES)
        return {"out": x + kernel.sizes["m"] * x[:, places % lsize].sum(axis=-1)}


def _elements(lsize: int, stride: int) -> int:
    """Returns the elements of a local array that holds all accesses, in whole rows of a work-group's elements."""
    return -(-(stride * (lsize - 1) + WINDOW) // lsize) * lsize
