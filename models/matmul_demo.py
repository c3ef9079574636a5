"""The main job: the 2018 slides' models of a square matrix multiplication, on whatever device there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from perfmodel.kernels.kernel import Kernel
from perfmodel.models.probe import needs_small_sizes
from perfmodel.recipes.recipe import Recipe, TagFilter

# The slides' demonstration: time is proportional to the multiply-adds, at a rate that whole multiplications show. It
# knows nothing else of a kernel, so that each variant needs a calibration, and is not told from the other.
ONE_TERM = "p_madd * f_op_float32_madd"

# The slides' page "Matmul model", overlapped as in "Modeling local-global overlap". All its global access patterns are
# here; patterns that these measurement kernels show only together, as the two loads of one tile, share a parameter.
OVERLAP = """
overhead = p_launch * f_sync_kernel_launch + p_group * f_thread_groups
result   = p_store * f_mem_access_global_float32_store
stream   = p_stream * f_mem_access_global_float32_load_lstrides:{0:1;1:0}_afr:<=1
direct   = p_direct * (f_mem_access_global_float32_load_lstrides:{0:1;1:0}_gstrides:{0:>=8;1:0}_afr:>1
                       + f_mem_access_global_float32_load_lstrides:{0:0;1:>1}_gstrides:{0:0;1:>1}_afr:>1)
fetched  = p_fetch * (f_mem_access_global_float32_load_lstrides:{0:1;1:>1}_gstrides:{0:>=8;1:0}_afr:>1
                      + f_mem_access_global_float32_load_lstrides:{0:1;1:>1}_gstrides:{0:0;1:>1}_afr:>1)
gmem     = result + stream + direct + fetched
onchip   = p_madd * f_op_float32_madd + p_lmem * f_mem_access_local_float32
overhead + smooth_max(gmem, onchip, p_edge)
"""

PREFETCH, NO_FETCH, BOTH = "one-term-prefetch", "one-term-no-fetch", "overlap"
"""The models, by name: of one variant each, and of both."""
VARIANTS = ("matmul_sq", "dtype:float32", "lsize_0:16", "lsize_1:16", "groups_fit:True", "tiled_prefetch:*")

# (sizes to calibrate with, sizes to predict), each a regular series, so that no size is picked or spared: some between
# those of the fit, the others from there to over twice the largest in the fit. The small ones serve devices that need
# more than half a millisecond for n = 512.
SMALL = (range(256, 577, 64), (*range(288, 481, 64), *range(640, 1153, 64)))
LARGE = (range(768, 2049, 256), (*range(896, 1921, 256), *range(2560, 5121, 512)))


def is_whole(kernel: Kernel) -> bool:
    """Returns True if a kernel is a multiplication with all its work, rather than one of its accesses or a
    microbenchmark."""
    return kernel.name == VARIANTS[0] and "kept" not in kernel.tags


class MatmulDemo(Recipe):
    """Fits one term to whole multiplications of one variant, as in the slides, and overlap to everything."""

    name = "demo"
    summary = "square matrix multiplication with and without prefetch, at sizes held out of the fit (2018 slides)"
    models: ClassVar = {PREFETCH: ONE_TERM, NO_FETCH: ONE_TERM, BOTH: OVERLAP}
    baselines = False

    def measurement_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        fitted, _ = self.sizes(seconds_of)
        large = fitted == LARGE[0]
        elements = "4194304,16777216,67108864" if large else "65536,262144,1048576"
        items = "262144,1048576" if large else "4096,16384"
        groups = "1024,4096" if large else "16,64"
        tiles = "1024,1536,2048" if large else "256,384,448"
        return [
            [*VARIANTS, _n(fitted)],
            ["matmul_sq", "tiled_prefetch:True", "work_removed:True", f"n:{tiles}"],
            ["global_copy", "loads:0,1,2", f"n:{elements}"],
            ["throughput", "op:madd", f"n:{items}", "m:1024,4096"],
            ["launch", f"groups:4,256,{groups}"],
        ]

    def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        _, predicted = self.sizes(seconds_of)
        return [[*VARIANTS, _n(predicted)]]

    def is_fitted_to(self, model: str, kernel: Kernel) -> bool:
        is_tiled = kernel.tags.get("tiled_prefetch") == "True"
        return model == BOTH or (is_whole(kernel) and is_tiled == (model == PREFETCH))

    def label(self, kernel: Kernel) -> str:
        return "prefetch" if kernel.tags["tiled_prefetch"] == "True" else "no fetch"

    def sizes(self, seconds_of: Callable[[TagFilter], float]) -> tuple[Sequence[int], Sequence[int]]:
        return SMALL if needs_small_sizes(seconds_of) else LARGE


def _n(sizes: Sequence[int]) -> str:
    return "n:" + ",".join(map(str, sizes))
