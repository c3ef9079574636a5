"""Shows what types a user's own file sees; type checkers prove it (`make check`), and it runs as well."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import perfmodel as pm
from perfmodel.modelling.advising import Advice
from perfmodel.modelling.explanation import Explanation
from perfmodel.modelling.ranked import Ranking

TEXT = "__kernel void scale(__global float *x) { x[get_global_id(0)] *= 2; }"


def main() -> None:
    kernel = pm.Kernel.from_opencl(TEXT, "scale", 2**20, 128, {"x": 2**20}, name="mine")
    calibration = pm.Calibration.shipped(device="H200")
    assert_type(kernel.with_name("other"), pm.Kernel)
    assert_type(calibration.predict(kernel), NDArray[np.float64])
    assert_type(calibration.explain(kernel), Explanation)
    assert_type(calibration.advise(kernel), Advice)
    ranking = calibration.rank([kernel])
    assert_type(ranking, Ranking)
    assert_type(ranking.best, pm.Kernel)
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    assert_type(collection.generate_kernels(["empty"]), list[pm.Kernel])
    model = pm.Model("f_cl_wall_time", "p_madd * f_op_float32_madd")
    assert_type(model.parameters, tuple[str, ...])
    print(ranking)


if __name__ == "__main__":
    main()
