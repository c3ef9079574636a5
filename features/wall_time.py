"""The measured time of a kernel: ``f_cl_wall_time``, or of one device, ``f_cl_wall_time_nvidia_geforce``."""

from __future__ import annotations

from collections.abc import Iterable

from perfmodel.basics.errors import DeviceError
from perfmodel.device import Device, find_device
from perfmodel.kernels.kernel import Kernel, as_kernel
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.named_features import FeatureFamily, MeasuredFeature, unknown_word


class WallTime(MeasuredFeature):
    """Seconds from start to end of the kernel's profiling event, on the device that the name's suffix selects."""

    unit = "s"

    def __init__(self, name: FeatureName, device_words: tuple[str, ...]) -> None:
        self.name = name.text
        self.device_words = device_words

    def select_device(self, default: Device | str | None = None, stored: Iterable[Device] = ()) -> Device:
        known = list(stored)
        if not self.device_words:
            return find_device(default, known)
        wanted = find_device(" ".join(self.device_words), known)
        asked = wanted if default is None else find_device(default, known)
        if asked != wanted:
            raise DeviceError(f"{self.name!r} is the time on {wanted.key}, not on {asked.key}; ask for one of the two")
        return wanted

    def eval(self, knl: Kernel) -> float:
        from perfmodel.measuring.isolation.bench import isolated_timer
        from perfmodel.measuring.protocol import PROTOCOLS

        with isolated_timer(self.select_device()) as timer:
            return timer(as_kernel(knl).launch(), PROTOCOLS["unified"]).seconds


class WallTimeFamily(FeatureFamily):
    prefix = ("cl", "wall", "time")
    summary = "measured time in seconds, on the device whose name the suffix is a part of"
    examples = ("f_cl_wall_time", "f_cl_wall_time_nvidia_geforce")

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> WallTime:
        for word in words:
            if word.condition is not None:
                raise unknown_word(name, word, ("words of a device's name",))
        return WallTime(name, tuple(word.key.lower() for word in words))
