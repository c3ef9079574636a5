"""The process in which launches are timed: it reads one after the other and answers each; what goes wrong stays in it.

`perfmodel.measuring.isolation.process` starts it. Both talk lines of JSON over a socket pair: nothing that is said can
be code.
"""

from __future__ import annotations

import json
import os
import pkgutil
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from io import BufferedRWPair
from typing import Any, NoReturn

from perfmodel.basics.errors import PerfmodelError
from perfmodel.device import CUDA, Device
from perfmodel.kernels.arguments import Argument, Array, Image, LocalArray, Scalar, Struct
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.protocol import Protocol, Timing, time_launch

Timer = Callable[[Launch, Protocol], Timing]

_FORMS: dict[str, type[Any]] = {form.__name__: form for form in (Array, Image, Scalar, Struct, LocalArray)}


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
        values = {**values, "fields": fields, "offsets": tuple(values["offsets"])}
    if form == Image.__name__:
        values = {**values, "sizes": tuple(values["sizes"])}
    found: Argument = _FORMS[form](**values)
    return found


def as_timing(message: Mapping[str, Any]) -> Timing:
    return Timing(**{**message, "trials": tuple(message["trials"]), "flags": tuple(message["flags"])})


def serve(number: int) -> NoReturn:
    """Answers requests, a line of JSON each, on the socket of this number until its other end is closed."""
    with suppress(EOFError, ConnectionError):
        _serve(socket.socket(fileno=number).makefile("rwb"))
    os._exit(0)  # a driver that would hang while it is unloaded can't


def _serve(channel: BufferedRWPair) -> None:
    opening = _heard(channel)
    device = Device.from_fingerprint(opening["device"])
    try:
        timer: Timer = pkgutil.resolve_name(opening["timer"])(device)
    except PerfmodelError as error:
        _say(channel, {"error": str(error)})
        return
    _say(channel, {})
    while True:
        request = _heard(channel)
        answer = _answer(timer, as_launch(request["launch"]), Protocol(**request["protocol"]))
        # After a failure that ended the device's session, only a new process is sure to be without its traces.
        answer["spoilt"] = "error" in answer and opening["timer"] == DEVICE_TIMER and not device.has_session
        _say(channel, answer)


DEVICE_TIMER = f"perfmodel.measuring.isolation.child:{device_timer.__name__}"


def _answer(timer: Timer, launch: Launch, protocol: Protocol) -> dict[str, Any]:
    try:
        return {"timing": asdict(timer(launch, protocol))}
    except PerfmodelError as error:
        return {"error": str(error)}
    except Exception as error:
        return {"error": f"kernel {launch.kernel_name!r} could not be timed ({type(error).__name__}: {error})"}


def _heard(channel: BufferedRWPair) -> dict[str, Any]:
    if not (line := channel.readline()).endswith(b"\n"):
        raise EOFError
    return dict(json.loads(line))


def _say(channel: BufferedRWPair, message: Mapping[str, Any]) -> None:
    channel.write(json.dumps(message).encode() + b"\n")
    channel.flush()
