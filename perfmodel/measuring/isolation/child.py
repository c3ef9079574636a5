"""Times launches in a process of its own, in which what goes wrong stays."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from perfmodel.basics.errors import PerfmodelError
from perfmodel.device import CUDA, Device
from perfmodel.kernels.arguments import Argument, Array, Image, LocalArray, Sampler, Scalar, Struct
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.isolation.serving import Answers, Message
from perfmodel.measuring.protocol import Protocol, Timing, time_launch

Timer = Callable[[Launch, Protocol], Timing]

_FORMS: dict[str, type[Any]] = {form.__name__: form for form in (Array, Image, Sampler, Scalar, Struct, LocalArray)}


def device_timer(device: Device) -> Timer:
    """Returns a timer of launches on the device itself, which is used unless a campaign names another."""
    if device.runtime == CUDA:
        device.cuda_session()
    else:
        device.session()
    return lambda launch, protocol: time_launch(launch, device, protocol)


def as_message(launch: Launch) -> dict[str, Any]:
    """Returns a launch as plain values."""
    forms = [type(argument).__name__ for argument in launch.arguments]
    return asdict(launch) | {"arguments": [[form, asdict(a)] for form, a in zip(forms, launch.arguments, strict=True)]}


def as_launch(message: Mapping[str, Any]) -> Launch:
    arguments: list[Argument] = [_argument(form, values) for form, values in message["arguments"]]
    sequences = {name: tuple(value) for name, value in message.items() if isinstance(value, list)}
    return Launch(**{**message, **sequences, "arguments": tuple(arguments)})


def _argument(form: str, values: Mapping[str, Any]) -> Argument:
    if form == Struct.__name__:
        fields = tuple(Scalar(**field) for field in values["fields"])
        arrays = tuple(Array(**array) for array in values.get("arrays", ()))
        places = {name: tuple(values.get(name, ())) for name in ("offsets", "places")}
        values = {**values, "fields": fields, "arrays": arrays, **places}
    if form == Image.__name__:
        values = {**values, "sizes": tuple(values["sizes"])}
    found: Argument = _FORMS[form](**values)
    return found


def as_timing(message: Mapping[str, Any]) -> Timing:
    return Timing(**{**message, "trials": tuple(message["trials"]), "flags": tuple(message["flags"])})


def measuring(opening: Message) -> Answers:
    """Returns what times launches on a device; see `perfmodel.measuring.isolation.serving`."""
    device = Device.from_fingerprint(opening["device"])
    timer: Timer = pkgutil.resolve_name(opening["timer"])(device)

    def answer(request: Message) -> dict[str, Any]:
        found = _answer(timer, as_launch(request["launch"]), Protocol(**request["protocol"]))
        # After a failure that ended the device's session, only a new process is sure to be without its traces.
        spoilt = "error" in found and opening["timer"] == DEVICE_TIMER and not device.has_session
        return {**found, "spoilt": spoilt}

    return answer


MEASURING = f"{__name__}:{measuring.__name__}"
DEVICE_TIMER = f"{__name__}:{device_timer.__name__}"


def _answer(timer: Timer, launch: Launch, protocol: Protocol) -> dict[str, Any]:
    try:
        return {"timing": asdict(timer(launch, protocol))}
    except PerfmodelError as error:
        return {"error": str(error)}
    except Exception as error:
        return {"error": f"kernel {launch.kernel_name!r} could not be timed ({type(error).__name__}: {error})"}
