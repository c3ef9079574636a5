"""A device: what it is called, what it says of itself, and how one is chosen."""

from __future__ import annotations

import hashlib
import itertools
import os
import platform as host
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from perfmodel.basics.errors import DeviceError, nearest
from perfmodel.device.cpuinfo import numbers_here
from perfmodel.device.drivers import driver_faults, opencl, platforms
from perfmodel.device.session import Session

if TYPE_CHECKING:
    from perfmodel.device.cuda_gpus import ToldByCuda
    from perfmodel.device.cuda_session import CudaSession

DEVICE_VARIABLE = "PERFMODEL_DEVICE"
KINDS = ("gpu", "cpu", "accelerator")
OPENCL, CUDA = "OpenCL", "CUDA"
"""Runtimes that time kernels: OpenCL C goes by way of the one, PTX by way of the other."""
_CUDA_WORD = "cuda"


@dataclass(frozen=True)
class Device:
    """One device of OpenCL's or of CUDA's, as a plain value that can be compared, pickled and stored.

    A GPU of NVIDIA's may be there twice, once for each runtime, as two devices with times of their own.

    Attributes:
        key: readable name and hash of platform, vendor, name, compute units and, of processors, the numbers that Linux
            tells of their family and model; the same on every run and with every driver version. One of CUDA's begins
            with ``cuda-``. Identical devices are told apart by ``.2``, ``.3``, in the order of their PCI addresses;
            ``/4`` behind it means a part of the device with four compute units.
        platform: OpenCL's, or ``CUDA``.
        driver: the driver's version.
        opencl_version: what the runtime says of itself; of CUDA with the device's compute capability.
        kind: ``"gpu"``, ``"cpu"`` or ``"accelerator"``.
        clock_mhz: the highest clock that the driver reports, zero where it reports none.
        global_memory, max_allocation, local_memory: bytes; the last is per work-group.
        sub_group_size: work-items of a warp or wavefront where the driver tells, else None.
    """

    key: str
    name: str
    platform: str
    vendor: str
    driver: str
    opencl_version: str
    kind: str
    compute_units: int
    clock_mhz: int
    global_memory: int
    max_allocation: int
    local_memory: int
    max_work_group_size: int
    max_work_item_sizes: tuple[int, ...]
    sub_group_size: int | None
    double_precision: bool
    half_precision: bool

    def fingerprint(self) -> dict[str, Any]:
        """Returns everything known of the device, as values that JSON can hold."""
        return asdict(self) | {"max_work_item_sizes": list(self.max_work_item_sizes)}

    @classmethod
    def from_fingerprint(cls, fingerprint: Mapping[str, Any]) -> Device:
        """Returns the device that a stored measurement was taken on, wherever that is.

        Raises:
            DeviceError: if the mapping lacks anything that `fingerprint` gives.
        """
        if missing := [field.name for field in fields(cls) if field.name not in fingerprint]:
            raise DeviceError(f"a device without {', '.join(missing)} can't be described; give all of its fingerprint")
        values = {field.name: fingerprint[field.name] for field in fields(cls)}
        return cls(**values | {"max_work_item_sizes": tuple(values["max_work_item_sizes"])})

    @property
    def runtime(self) -> str:
        """The runtime that times kernels on the device: `OPENCL` or `CUDA`."""
        return CUDA if self.platform == CUDA else OPENCL

    @property
    def compute_capability(self) -> str | None:
        """NVIDIA's number of a CUDA device's features, such as ``9.0``; None of others."""
        found = re.search(r"compute capability ([\d.]+)", self.opencl_version) if self.runtime == CUDA else None
        return found[1] if found else None

    @property
    def is_here(self) -> bool:
        """True if the device is on this machine; one that is known from a store's measurements may be elsewhere."""
        return self.key in _sessions or _split(self.key)[0] in {device.key for device in _of_this_machine()}

    def with_units(self, units: int) -> Device:
        """Returns a part of the device with so many compute units, as a device of its own.

        Raises:
            DeviceError: it has not got so many.
        """
        if not 1 <= units <= self.compute_units:
            raise DeviceError(
                f"device {self.key} has no part of {units} compute units; give a number from 1 to {self.compute_units}"
            )
        if units == self.compute_units:
            return self
        return replace(self, key=f"{_split(self.key)[0]}/{units}", compute_units=units)

    def context(self) -> Any:
        """Returns this process's pyopencl context on the device.

        Raises:
            DeviceError: the device is not on this machine, its driver refuses, or it is reached by way of CUDA.
        """
        return self.session().context

    def queue(self) -> Any:
        """Returns this process's pyopencl command queue on the device, with profiling; errors as in `context`."""
        return self.session().queue

    def session(self) -> Session:
        """Returns all that this process holds on the device; errors as in `context`."""
        if self.runtime == CUDA:
            raise DeviceError(
                f"device {self.key} is reached by way of CUDA, which runs no OpenCL C; choose the OpenCL device of the "
                "same GPU"
            )
        if self.key not in _sessions:
            found = {device.key: raw for device, raw in _listed_by_opencl()}
            whole, units = _split(self.key)
            if whole not in found:
                raise DeviceError(f"device {self.key} is not on this machine; {_candidates(list(found))}")
            _sessions[self.key] = Session(self, found[whole] if units is None else _part(self.key, found[whole], units))
        return _sessions[self.key]

    def cuda_session(self) -> CudaSession:
        """Returns all that this process holds on a device of CUDA's.

        Raises:
            DeviceError: the device is not on this machine, its driver refuses, or it is reached by way of OpenCL.
        """
        if self.runtime != CUDA:
            raise DeviceError(f"device {self.key} is reached by way of OpenCL; choose one of CUDA's, such as `cuda`")
        if self.key not in _cuda_sessions:
            from perfmodel.device.cuda_session import CudaSession  # only for CUDA

            found = {device.key: ordinal for device, ordinal in _listed_by_cuda()}
            if self.key not in found:
                raise DeviceError(f"device {self.key} is not on this machine; {_candidates(list(found))}")
            _cuda_sessions[self.key] = CudaSession(self, found[self.key])
        return _cuda_sessions[self.key]

    @property
    def has_session(self) -> bool:
        """True if this process holds anything on the device."""
        return self.key in _sessions or self.key in _cuda_sessions

    def end_session(self) -> None:
        """Forgets all that this process holds on the device, as after a kernel that spoilt its context."""
        _sessions.pop(self.key, None)
        _cuda_sessions.pop(self.key, None)


_sessions: dict[str, Session] = {}
_cuda_sessions: dict[str, CudaSession] = {}


def _split(selector: str) -> tuple[str, int | None]:
    """Returns a selector without the number of compute units behind it, and that number."""
    whole, mark, units = selector.rpartition("/")
    return (whole, int(units)) if mark and units.isdecimal() else (selector, None)


def _part(key: str, raw: Any, units: int) -> Any:
    """Returns the pyopencl object of some of a device's compute units.

    Raises:
        DeviceError: the driver can't part the device so.
    """
    cl = opencl()
    try:
        return raw.create_sub_devices([cl.device_partition_property.BY_COUNTS, units, 0])[0]
    except cl.Error as error:
        raise DeviceError(f"the driver makes no device {key} ({error}); use the whole device") from error


def devices() -> list[Device]:
    """Returns every device of this machine, OpenCL's before CUDA's, each sorted by key; empty where there is none.

    Raises:
        DeviceError: pyopencl is not installed or does not load.
    """
    return [device for device, _ in (*_listed_by_opencl(), *_listed_by_cuda())]


def find_device(selector: str | Device | None = None, stored: Iterable[Device] = (), runtime: str = OPENCL) -> Device:
    """Returns the one device that `selector` names.

    Args:
        selector: a key, the beginning of a key, a part of the device's or platform's name in any case, or ``gpu``,
            ``cpu``, ``accelerator`` for the one of that kind with the most compute units. None takes the environment
            variable PERFMODEL_DEVICE, or else a GPU if there is one, or else a CPU. A Device is returned as it is.
            ``cpu/2``, or another name with ``/2``, is a part of that device with two compute units. ``cuda`` is the
            CUDA device with the most multiprocessors, ``cuda:0`` the first one.
        stored: devices known from measurements, such as `Store.devices` gives, for a selector that names none here.
        runtime: of devices of both runtimes that a selector names, those of this one are meant.

    Raises:
        DeviceError: there is no device, or `selector` names none or several.
    """
    if isinstance(selector, Device):
        return selector
    if not isinstance(selector, str | None):
        raise DeviceError(f"{selector!r:.40} names no device; give its key or part of its name, as text")
    selector = selector or os.environ.get(DEVICE_VARIABLE) or None
    elsewhere = list(stored) if selector else []
    name, units = _split(selector or "")
    if name and units is not None and not any(device.key == selector for device in elsewhere):
        return find_device(name, elsewhere, runtime).with_units(units)
    found = _of_this_machine() if elsewhere else devices()
    is_of_cuda = name.lower().partition(":")[0] == _CUDA_WORD if selector else runtime == CUDA
    if is_of_cuda and not any(device.runtime == CUDA for device in (*found, *elsewhere)):
        from perfmodel.device.cuda_driver import cuda_driver  # only for CUDA

        cuda_driver()  # says what is missing
        raise DeviceError("no CUDA device was found: NVIDIA's driver lists none")
    if not found and not elsewhere:
        raise DeviceError(_no_device())
    if selector is None:
        group = _preferred(found, runtime)
        return _largest(next(alike for kind in KINDS if (alike := [d for d in group if d.kind == kind])))
    return named(selector, found, elsewhere, runtime=runtime)


def named(selector: str | Device, *groups: Sequence[Device], runtime: str = OPENCL) -> Device:
    """Returns the one device that `selector` names, of the first group in which it names any; see `find_device`.

    Raises:
        DeviceError: it names none, or several.
    """
    if isinstance(selector, Device):
        return selector
    matching = next(filter(None, (_matching(selector, list(group), runtime) for group in groups)), [])
    if len(matching) == 1:
        return matching[0]
    keys = list(dict.fromkeys(device.key for device in matching or itertools.chain(*groups)))
    if matching:
        raise DeviceError(f"{selector!r} names several devices; choose one by its key: {', '.join(keys)}")
    raise DeviceError(f"no device is called {selector!r}; {_candidates(keys)}{nearest(selector, keys)}")


def _matching(selector: str, found: list[Device], runtime: str) -> list[Device]:
    if exact := [device for device in found if device.key == selector]:
        return exact
    wanted = selector.lower()
    word, _, number = wanted.partition(":")
    if word == _CUDA_WORD:
        of_cuda = [device for device in found if device.runtime == CUDA]
        if not number:
            return [_largest(of_cuda)] if of_cuda else []
        return of_cuda[int(number) :][:1] if number.isdecimal() else []
    if of_kind := _preferred([device for device in found if device.kind == wanted], runtime):
        return [_largest(of_kind)]
    return _preferred([device for device in found if device.key.startswith(wanted)], runtime) or _preferred(
        [device for device in found if wanted in device.name.lower() or wanted in device.platform.lower()], runtime
    )


def _preferred(found: list[Device], runtime: str) -> list[Device]:
    """Returns those of a runtime, or all where it has none."""
    return [device for device in found if device.runtime == runtime] or found


def _of_this_machine() -> list[Device]:
    """Returns `devices()`, or none where pyopencl is missing."""
    try:
        return devices()
    except DeviceError:
        return []


def _largest(group: list[Device]) -> Device:
    return max(group, key=lambda device: device.compute_units)


def _candidates(keys: list[str]) -> str:
    return f"there are {', '.join(keys)}" if keys else "there is none at all"


def _no_device() -> str:
    faults = "; ".join(str(fault) for fault in driver_faults())
    return f"no OpenCL device was found: {_remedy()}" + (f" (drivers that give no device: {faults})" if faults else "")


def _remedy() -> str:
    if sys.platform == "linux" and host.machine() in ("x86_64", "AMD64"):
        return "`pip install intel-opencl-rt intel-cmplr-lib-rt` gives one on any x86-64 processor"
    if sys.platform == "linux":
        return "Debian's and Ubuntu's package `pocl-opencl-icd` or conda-forge's `pocl` gives one on any processor"
    if sys.platform == "darwin":
        return "conda-forge's `pocl` gives one on any processor"
    return "install the OpenCL driver of the processor's or graphics card's vendor"


def _listed_by_opencl() -> list[tuple[Device, Any]]:
    """Returns every OpenCL device with its pyopencl object, sorted by key."""
    return _told_apart([(_described(platform, raw), _pci_address(raw), raw) for platform, raw in _raw_devices()])


def _listed_by_cuda() -> list[tuple[Device, int]]:
    """Returns every CUDA device with the driver's number of it, sorted by key; none without driver or package."""
    from perfmodel.device.cuda_gpus import told_by_cuda  # only where devices are looked for

    return _told_apart([(_of_cuda(told), told.pci_address, told.ordinal) for told in told_by_cuda()])


def _of_cuda(told: ToldByCuda) -> Device:
    return Device(
        key=f"{_CUDA_WORD}-{_key(CUDA, told.vendor, told.name, told.units)}",
        name=told.name,
        platform=CUDA,
        vendor=told.vendor,
        driver=told.driver,
        opencl_version=f"CUDA {told.version}, compute capability {told.capability}",
        kind="gpu",
        compute_units=told.units,
        clock_mhz=told.clock_mhz,
        global_memory=told.memory_bytes,
        max_allocation=told.memory_bytes,
        local_memory=told.shared_bytes,
        max_work_group_size=told.most_threads,
        max_work_item_sizes=told.block_sizes,
        sub_group_size=told.warp_size,
        double_precision=True,
        half_precision=True,
    )


_Raw = TypeVar("_Raw")


def _told_apart(described: list[tuple[Device, tuple[int, ...], _Raw]]) -> list[tuple[Device, _Raw]]:
    """Returns devices sorted by key, identical ones with numbers.

    Args:
        described: each device, its PCI address, and what its runtime calls it.
    """
    # The order in which drivers list devices changes between runs: identical ones are ordered by where they sit.
    described.sort(key=lambda each: (each[0].key, each[1], each[0].driver))
    seen: dict[str, int] = {}
    listed = []
    for device, _, raw in described:
        count = seen[device.key] = seen.get(device.key, 0) + 1
        listed.append((device if count == 1 else replace(device, key=f"{device.key}.{count}"), raw))
    return listed


def _raw_devices() -> Iterator[tuple[Any, Any]]:
    """Yields every platform and device of pyopencl that can run kernels."""
    cl = opencl()
    for platform in platforms(cl):
        try:
            usable = [raw for raw in platform.get_devices() if raw.available and raw.compiler_available]
        except cl.Error:  # a driver that fails: driver_faults tells more
            continue
        yield from ((platform, raw) for raw in usable)


def _described(platform: Any, raw: Any) -> Device:
    name, platform_name, vendor = raw.name.strip(), platform.name.strip(), raw.vendor.strip()
    kinds = {4: "gpu", 2: "cpu"}  # CL_DEVICE_TYPE_GPU and CL_DEVICE_TYPE_CPU
    kind = next((kind for bit, kind in kinds.items() if raw.type & bit), "accelerator")
    extensions = raw.extensions.split()
    return Device(
        key=_key(platform_name, vendor, name, raw.max_compute_units, numbers_here() if kind == "cpu" else ""),
        name=name,
        platform=platform_name,
        vendor=vendor,
        driver=raw.driver_version.strip(),
        opencl_version=raw.version.strip(),
        kind=kind,
        compute_units=raw.max_compute_units,
        clock_mhz=raw.max_clock_frequency,
        global_memory=raw.global_mem_size,
        max_allocation=raw.max_mem_alloc_size,
        local_memory=raw.local_mem_size,
        max_work_group_size=raw.max_work_group_size,
        max_work_item_sizes=tuple(raw.max_work_item_sizes),
        sub_group_size=_asked(raw, "warp_size_nv") or _asked(raw, "wavefront_width_amd"),
        double_precision="cl_khr_fp64" in extensions,
        half_precision="cl_khr_fp16" in extensions,
    )


def _key(platform: str, vendor: str, name: str, compute_units: int, numbers: str = "") -> str:
    told = [platform, vendor, name, str(compute_units), *([numbers] if numbers else [])]
    identity = hashlib.sha256("\n".join(told).encode()).hexdigest()
    return f"{slug(name)}-{identity[:6]}"


def slug(name: str) -> str:
    """Returns a device's name as keys begin with it: ``intel-xeon-processor``."""
    readable = re.sub(r"\((r|tm|c)\)|@.*", "", name.lower())
    return re.sub(r"[^a-z0-9]+", "-", readable).strip("-")[:40].strip("-") or "device"


def _pci_address(raw: Any) -> tuple[int, ...]:
    address = [_asked(raw, f"pci_{part}_nv") for part in ("domain_id", "bus_id", "slot_id")]
    if address[1] is None and (topology := _asked(raw, "topology_amd")) is not None:
        address = [_asked(topology, part) for part in ("bus", "device", "function")]
    return tuple(-1 if part is None else part for part in address)


def _asked(raw: Any, attribute: str) -> Any:
    """Returns a vendor's own attribute; None where the driver does not know it."""
    cl = opencl()
    try:
        return getattr(raw, attribute)
    except (AttributeError, cl.Error):
        return None
