"""Prints what commands found: one JSON document and nothing else, or text whose tables fit where it is shown."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from perfmodel.basics.json_values import plain
from perfmodel.basics.terminal import fitted_tables


def found(parsed: argparse.Namespace, data: Callable[[], Any], shown: Callable[[], str]) -> None:
    """Prints what a command found: as one JSON document where the options ask for that, else as text."""
    if parsed.json:
        document(data())
    else:
        text(shown)


def only(documents: list[Any]) -> Any:
    """Returns the only document of a command; all of them where there are several."""
    return documents[0] if len(documents) == 1 else documents


def document(data: Any) -> None:
    """Prints one JSON document, in which numbers that are not finite are null."""
    print(json.dumps(plain(data), allow_nan=False))


def text(make: Callable[[], str]) -> None:
    """Prints what `make` gives; its tables are no wider than the terminal, or 80 columns."""
    with fitted_tables():
        shown = make()
    print(shown)


def teller(parsed: argparse.Namespace) -> Callable[[str], None]:
    """Returns a function that prints a line before each step, on standard error where standard output is for a
    document."""
    return lambda message: print(f"{message} …", file=sys.stderr if parsed.json else None, flush=True)


@contextmanager
def only_document(parsed: argparse.Namespace) -> Iterator[None]:
    """Sends what is printed meanwhile to standard error where standard output is for a document."""
    if not parsed.json:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield
