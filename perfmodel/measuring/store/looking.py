"""Looks into a store before anything is written: none is made for that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfmodel.measuring.store.store import Store


@contextmanager
def looked_into(store: Store | str | os.PathLike[str] | None) -> Iterator[Store]:
    """Yields the store, only to be read; an empty one where there is none at the path.

    Raises:
        StoreError: what lies at the path can't be opened as a store.
    """
    if isinstance(store, Store):
        yield store
    elif store is None or (isinstance(store, str | os.PathLike) and not Path(store).exists()):
        with Store() as empty:
            yield empty
    else:
        with Store(store, read_only=True) as opened:
            yield opened
