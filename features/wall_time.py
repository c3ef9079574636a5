"""The measured time of a kernel: ``f_cl_wall_time``, or of one device, ``f_cl_wall_time_nvidia_geforce``."""

from __future__ import annotations

from collections.abc import Iterable

from perfmodel.basics.errors import DeviceError
from perfmodel.device import OPENCL, Device, find_device
from perfmodel.kernels.kernel import Kernel, as_kernel
from perfmodel.kernels.program import runtime_of
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.named_features import FeatureFamily, MeasuredFeature, unknown_word


class WallTime(MeasuredFeature):
    """Seconds that the device's clock gives for the kernel, on the device that the name's suffix selects."""

    unit = "s"

    def __init__(self, name: FeatureName, device_words: tuple[str, ...]) -> None:
        self.name = name.text
        self.device_words = device_words

    def select_device(
        self, default: Device | str | None = None, stored: Iterable[Device] = (), runtime: str = OPENCL
    ) -> Device:
        known = list(stored)
        if not self.device_words:
            return find_device(default, known, runtime)
        wanted = find_device(" ".join(self.device_words), known, runtime)
        asked = wanted if default is None else find_device(default, known, runtime)
        if asked != wanted:
            raise DeviceError(f"{self.name!r} is the time on {wanted.key}, not on {asked.key}; ask for one of the two")
        return wanted

    def eval(self, knl: Kernel) -> float:
        from perfmodel.measuring.isolation.bench import isolated_timer
        from perfmodel.measuring.protocol import PROTOCOLS

        kernel = as_kernel(knl)
        with isolated_timer(self.select_device(runtime=runtime_of([kernel.program]))) as timer:
            return timer(kernel.launch(), PROTOCOLS["unified"]).seconds


class WallTimeFamily(FeatureFamily):
    prefix = ("cl", "wall", "time")
    summary = "measured time in seconds, on the device whose name the suffix is a part of"
    examples = ("f_cl_wall_time", "f_cl_wall_time_nvidia_geforce")

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> WallTime:
        for word in words:
            if word.condition is not None:
                raise unknown_word(name, word, ("words of a device's name",))
        return WallTime(name, tuple(word.key.lower() for word in words))
