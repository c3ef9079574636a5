"""Answers requests in a process that another one started: what goes wrong stays in it.

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
from io import BufferedRWPair
from typing import Any, NoReturn

from perfmodel.basics.errors import PerfmodelError

Message = Mapping[str, Any]
Answers = Callable[[Message], Message]


def serve(number: int, function: str) -> NoReturn:
    """Answers requests, a line of JSON each, on the socket of this number until its other end is closed.

    Args:
        function: ``module:function``, which makes what answers requests of the first message.
    """
    with suppress(EOFError, ConnectionError):
        _serve(socket.socket(fileno=number).makefile("rwb"), function)
    os._exit(0)  # a driver that would hang while it is unloaded can't


def _serve(channel: BufferedRWPair, function: str) -> None:
    opening = _heard(channel)
    try:
        answers: Answers = pkgutil.resolve_name(function)(opening)
    except PerfmodelError as error:
        _say(channel, {"error": str(error)})
        return
    _say(channel, {})
    while True:
        _say(channel, answers(_heard(channel)))


def _heard(channel: BufferedRWPair) -> dict[str, Any]:
    if not (line := channel.readline()).endswith(b"\n"):
        raise EOFError
    return dict(json.loads(line))


def _say(channel: BufferedRWPair, message: Message) -> None:
    channel.write(json.dumps(message).encode() + b"\n")
    channel.flush()
