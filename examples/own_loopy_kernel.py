"""A kernel of one's own as a Loopy program: what it does, how long it takes, and which variant to take.

python examples/own_loopy_kernel.py
"""

from __future__ import annotations

import loopy as lp
import numpy as np

import perfmodel as pm


def row_means(group: int) -> pm.Kernel:
    """Returns a kernel of the mean of each row of a matrix, `group` rows to a work-group."""
    program = lp.make_kernel(
        "{[i, j]: 0 <= i, j < n}",
        """
        <float32> total = 0 {id=start, inames=i}
        total = total + a[i, j] {id=add, dep=start}
        means[i] = total / n {dep=add}
        """,
        [
            lp.GlobalArg("a", np.float32, shape="n, n"),
            lp.GlobalArg("means", np.float32, shape="n", is_input=False),
            lp.ValueArg("n", np.int32),
        ],
        assumptions=f"n >= {group} and n mod {group} = 0",
        name="row_means",
        lang_version=(2018, 2),
    )
    program = lp.split_iname(program, "i", group, outer_tag="g.0", inner_tag="l.0")
    return pm.Kernel(program, {"group": str(group)})


def main() -> None:
    variants = [row_means(group) for group in (32, 128, 256)]
    print("additions at n = 1024:", pm.feature("f_op_float32_add").eval(variants[0].at(n=1024)))
    calibration = pm.Calibration.shipped(device="H200")
    print(calibration.rank(variants, n=4096))
    print(calibration.explain(variants[0], n=4096))


if __name__ == "__main__":
    main()
