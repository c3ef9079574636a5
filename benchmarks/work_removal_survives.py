"""Whether accesses that `isolate_accesses` keeps are in what an NVIDIA driver's compiler makes of their kernels (PTX).

python -m benchmarks.work_removal_survives --device gpu
"""

from __future__ import annotations

import argparse
import re
import warnings

import pyopencl as cl

import perfmodel as pm
from perfmodel.collection import ALL_GENERATORS, KernelCollection
from perfmodel.device import find_device
from perfmodel.opencl_program import OpenCLProgram

# Tags that change which accesses there are.
VARIANTS = ("tiled_prefetch", "fetch", "layout", "access", "branch", "prefetch", "direction")


def ptx(kernel: pm.Kernel, context: cl.Context) -> str:
    launch = kernel.launch()
    program = cl.Program(context, launch.source).build(list(launch.build_options), cache_dir=False)
    return str(program.get_info(cl.program_info.BINARIES)[0].decode(errors="replace"))


def main() -> None:
    parser = argparse.ArgumentParser(description="whether isolated accesses survive compilation")
    parser.add_argument("--device")
    device = find_device(parser.parse_args().device)
    warnings.simplefilter("ignore")
    survived, lost = 0, []
    for generator in ALL_GENERATORS:
        every = [f"{tag.name}:*" for tag in generator.tags if tag.name in VARIANTS]
        smallest = [f"{tag.name}:{tag.default[0]}" for tag in generator.tags if tag.is_size]
        for kernel in KernelCollection([generator]).generate_kernels([generator.name, *every, *smallest]):
            if isinstance(kernel.program, OpenCLProgram):
                continue
            for kept in pm.isolate_accesses(kernel):
                direction = "ld" if kept.tags["kept"].startswith("load") else "st"
                # Beside the kept access there is the store of a sum, which never comes to be executed.
                if re.search(rf"\b{direction}\.global", ptx(kept, device.session().context)):
                    survived += 1
                else:
                    lost.append(repr(kept))
    print(f"{survived} of {survived + len(lost)} kept accesses are in the PTX on {device.name}, driver {device.driver}")
    for kernel_name in lost:
        print("lost:", kernel_name)


if __name__ == "__main__":
    main()
