"""Replaces pyopencl's functions that set arguments, launch and copy, while a log is open.

`Kernel.__call__`, pyopencl's arrays, its element-wise, reduction and scan kernels, and Loopy's generated code all come
down to ``enqueue_nd_range_kernel`` of pyopencl or of its compiled part, to the `SETTERS`, and to the `COPIES`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from perfmodel.device.drivers import pyopencl_module
from perfmodel.interception.built import Built
from perfmodel.interception.contents import copied, events, is_read
from perfmodel.interception.copies import COPIES, Copying, CopyRecord
from perfmodel.interception.given import SETTERS, UNSET, Given, GivenBuffer
from perfmodel.interception.patching import Log, Patching, warn_unrecorded
from perfmodel.interception.record import LaunchRecord
from perfmodel.interception.stand_ins import StandIn, filled_buffer, profiled_queue

LAUNCH = "enqueue_nd_range_kernel"
_PARAMETERS = (
    *("queue", "kernel", "global_work_size", "local_work_size", "global_work_offset", "wait_for", "g_times_l"),
    "allow_empty_ndrange",
)
_ARGUMENTS, _BUILT = "_perfmodel_arguments", "_perfmodel_built"


@dataclass
class _Arguments:
    """Holds a kernel's arguments by position, as far as they were set since pyopencl was patched."""

    generation: int
    values: dict[int, Given]


class Patches(Patching):
    """Patches pyopencl while a log is open."""

    def __init__(self) -> None:
        super().__init__()
        self._generation = 0
        self._replaced: dict[Any, Any] = {}
        self._read: Any = None
        self._num_args: Any = None
        self._device_names: dict[int, str] = {}

    def _begin(self) -> None:
        cl = pyopencl_module()
        self._generation += 1
        self._num_args = cl.Kernel.num_args
        for name, pairs in SETTERS.items():
            if hasattr(cl.Kernel, name):
                self._patch(cl.Kernel, name, self._setting(getattr(cl.Kernel, name), pairs))
        self._patch(cl.Kernel, "clone", self._cloning(cl.Kernel.clone))
        self._patch(cl.Kernel, "num_args", self._counting(cl.Kernel.num_args))
        self._patch(cl.Program, "all_kernels", self._listing(cl.Program.all_kernels))
        self._read = cl._cl._enqueue_read_buffer
        launch = getattr(cl._cl, LAUNCH)
        self._replaced = {launch: self._launching(launch)}
        for name, copying in COPIES.items():
            if hasattr(cl._cl, name):
                original = getattr(cl._cl, name)
                self._replaced[original] = self._copying(original, copying)
        queue, buffer = cl._cl.CommandQueue, cl._cl.Buffer
        wanted = lambda: any(log.profiles for log in self._logs)  # noqa: E731
        self._replaced[queue] = StandIn(queue, profiled_queue(queue, wanted))
        self._replaced[buffer] = StandIn(buffer, filled_buffer(buffer, self._add_copy))
        _replace(self._replaced)

    def _end(self) -> None:
        super()._end()
        _replace({ours: original for original, ours in self._replaced.items()})

    # --- arguments

    def _setting(self, original: Callable[..., Any], pairs: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def setter(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._logs:
                return original(kernel, *args, **kwargs)
            noted: dict[int, Given] | None
            try:
                self._built(kernel)  # while its program is there
                noted = dict(pairs(*args, **kwargs))
            except Exception:  # most likely pyopencl refuses it as well
                noted = None
            try:
                result = original(kernel, *args, **kwargs)
            except BaseException:
                kernel.__dict__.pop(_ARGUMENTS, None)  # some of them may have been set
                raise
            if noted is None:
                kernel.__dict__.pop(_ARGUMENTS, None)
            else:
                self._values(kernel).update(noted)
            return result

        return setter

    def _cloning(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def clone(kernel: Any) -> Any:
            result = original(kernel)
            if self._logs:
                self._values(result).update(self._values(kernel))
                with suppress(Exception):  # at the launch, it is asked again
                    result.__dict__[_BUILT] = self._built(kernel)
            return result

        return clone

    def _counting(self, original: property) -> property:
        """Wraps a property that pyopencl asks of each kernel which it takes from a program, so that the kernel is
        noticed."""

        def count(kernel: Any) -> int:
            number: int = original.__get__(kernel)
            if self._logs:
                with suppress(Exception):  # at the launch, it is asked again
                    self._built(kernel)
            return number

        return property(count, doc=original.__doc__)

    def _listing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def all_kernels(program: Any) -> Any:
            kernels = original(program)
            if self._logs:
                for kernel in kernels:
                    with suppress(Exception):  # at the launch, it is asked again
                        self._built(kernel, program.__dict__.get("_source"))
            return kernels

        return all_kernels

    def _built(self, kernel: Any, source: str | bytes | None = None) -> Built:
        """Returns what is known of a kernel, asked once; `source` if it is known already."""
        built: Built | None = kernel.__dict__.get(_BUILT)
        if built is None:
            built = kernel.__dict__[_BUILT] = Built.of(kernel, self._num_args.__get__(kernel), source)
        return built

    def _values(self, kernel: Any) -> dict[int, Given]:
        """Returns the arguments noted so far; none of former interceptions, as they may have been set anew since."""
        noted = kernel.__dict__.get(_ARGUMENTS)
        if noted is None or noted.generation != self._generation:
            noted = kernel.__dict__[_ARGUMENTS] = _Arguments(self._generation, {})
        values: dict[int, Given] = noted.values
        return values

    # --- launches

    def _launching(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def launch(*args: Any, **kwargs: Any) -> Any:
            logs = tuple(dict.fromkeys(self._logs))
            if not logs:
                return original(*args, **kwargs)
            call = dict(zip(_PARAMETERS, args, strict=False)) | kwargs
            record = fault = None
            try:
                # Iterators can be read only once: they are read here, and what they gave is passed on.
                for name in ("global_work_size", "local_work_size", "global_work_offset", "wait_for"):
                    if hasattr(call.get(name), "__next__"):
                        call[name] = tuple(call[name])
                        args, kwargs = _with(args, kwargs, name, call[name])
                record = self._record(call)
                if record is not None:
                    wait_for = self._keep_contents(record, call, logs)
                    if wait_for is not None:
                        args, kwargs = _with(args, kwargs, "wait_for", wait_for)
            except Exception as error:  # most likely pyopencl refuses it as well
                fault = error
            event = original(*args, **kwargs)
            if fault is not None:
                warn_unrecorded(getattr(call.get("kernel"), "function_name", "of an unknown name"), fault)
            if record is not None:
                record.enqueued(call["queue"], event)
                for log in logs:
                    log.add(record)
            return event

        return launch

    def _record(self, call: dict[str, Any]) -> LaunchRecord | None:
        """Returns a record of what is launched; None for what pyopencl refuses or does not launch at all."""
        cl = pyopencl_module()
        queue, kernel, groups = call.get("queue"), call.get("kernel"), call.get("local_work_size")
        if not isinstance(queue, cl.CommandQueue) or not isinstance(kernel, cl.Kernel):
            return None
        try:
            items = tuple(map(int, call["global_work_size"]))
            local = None if groups is None else tuple(map(int, groups))
            offset = () if call.get("global_work_offset") is None else tuple(map(int, call["global_work_offset"]))
        except (KeyError, TypeError, ValueError):
            return None
        if call.get("g_times_l") and local is not None:
            axes = max(len(items), len(local))
            items, local = (sizes + (1,) * (axes - len(sizes)) for sizes in (items, local))
            items = tuple(count * size for count, size in zip(items, local, strict=True))
        if 0 in items or not items:
            return None
        built = self._built(kernel)
        values = self._values(kernel)
        arguments = tuple(values.get(position, UNSET) for position in range(built.parameters))
        return LaunchRecord(built, items, local, offset, arguments, self._device_name(queue))

    def _device_name(self, queue: Any) -> str:
        device = queue.device
        name = self._device_names.get(device.int_ptr)
        if name is None:
            name = self._device_names[device.int_ptr] = device.name.strip()
        return name

    def _keep_contents(self, record: LaunchRecord, call: dict[str, Any], logs: Sequence[Log]) -> list[Any] | None:
        """Begins copies of arrays, if a log wants them; returns what the launch must wait for, if that is changed."""
        cl = pyopencl_module()
        limits = [log.limit_bytes for log in logs if log.wants_contents(record)]
        if not limits:
            return None
        buffers = {each.address: each for each in record.given if isinstance(each, GivenBuffer) and is_read(each)}
        total = sum(buffer.n_bytes for buffer in buffers.values())
        if total > max(limits):
            reason = f"the launch's arrays have {total} bytes, more than limit_bytes={max(limits)}"
            record.contents.update(dict.fromkeys(buffers, reason))
            return None
        wait_for = call.get("wait_for")
        before = None if wait_for is None else list(wait_for)
        record.contents.update(copied(call["queue"], buffers.values(), before, self._read))
        keeps_order = not call["queue"].properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
        return None if keeps_order else [*(before or ()), *events(record.contents)]

    # --- copies

    def _copying(self, original: Callable[..., Any], copying: Copying) -> Callable[..., Any]:
        @functools.wraps(original)
        def copy(*args: Any, **kwargs: Any) -> Any:
            record = None
            if self._logs:
                with suppress(Exception):  # most likely pyopencl refuses it as well
                    call = dict(zip(copying.parameters, args, strict=False)) | kwargs
                    queue = call["queue"]
                    record = CopyRecord(copying.direction, copying.n_bytes(call), self._device_name(queue))
            event = original(*args, **kwargs)
            if record is not None:
                record.enqueued(queue, event)
                self._add_copy(record)
            return event

        return copy


PATCHES = Patches()


def _replace(changes: Mapping[Any, Any]) -> None:
    """Replaces functions and classes in every module that has them under any name, be it by ``from pyopencl import
    …``."""
    by_identity = {id(old): (old, new) for old, new in changes.items()}
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            namespace = ModuleType.__getattribute__(module, "__dict__")  # which loads no lazy module
            for name, value in list(namespace.items()):
                old, new = by_identity.get(id(value), (None, None))
                if old is not None and old is value:
                    namespace[name] = new


def _with(
    args: tuple[Any, ...], kwargs: dict[str, Any], name: str, value: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns a call's arguments with one of them replaced."""
    place = _PARAMETERS.index(name)
    if place < len(args):
        return (*args[:place], value, *args[place + 1 :]), kwargs
    return args, {**kwargs, name: value}
