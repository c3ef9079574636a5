"""The refusal of a source that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c.reading import read


def refusal(source: str, options: Sequence[str] = (), folders: Sequence[Path] = ()) -> SourceError:
    with pytest.raises(SourceError) as caught:
        read(source, options, folders)
    return caught.value
