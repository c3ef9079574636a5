"""JSON documents that perfmodel saves and that others may have written: one writer and one checker for every kind."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfmodel.basics import files, json_values
from perfmodel.basics.errors import PerfmodelError


@dataclass(frozen=True, kw_only=True)
class DocumentKind:
    """Says how one kind of documents is marked, and what its errors say.

    Attributes:
        name: of one such document: ``calibration``.
        refusal: of a file that is another: ``not a calibration``.
        writer: what writes such files.
        mend: what to do about a damaged one; `again`: what about one of another version.
        format, version: what every such document says of itself.
        error: the type of its errors.
    """

    name: str
    refusal: str
    writer: str
    mend: str
    again: str
    format: str
    version: int
    error: type[PerfmodelError]

    def save(self, path: str | os.PathLike[str], document: Any) -> None:
        """Writes a whole file, or leaves what was there; see `perfmodel.basics.files.replacing`.

        Raises:
            PerfmodelError: of the kind's type, if the file cannot be written.
        """
        try:
            files.write(path, json_values.document(document))
        except OSError as error:
            raise self.error(f"{self.name} {path} cannot be written ({error.strerror}); give another path") from error

    def load(self, path: Path) -> dict[str, Any]:
        """Returns the document that a file holds, whose format and version are checked and nothing else.

        Raises:
            PerfmodelError: of the kind's type, for a file that can't be read, is damaged, or is another.
        """
        try:
            content = json_values.read(path)
        except OSError as error:
            raise self.error(f"{self.name} {path} cannot be read ({error.strerror}); check the path") from error
        except ValueError as error:
            raise self.damaged(path, error) from error
        if not isinstance(content, dict) or content.get("format") != self.format:
            raise self.error(f"{path} is {self.refusal}; give a file that {self.writer} wrote")
        if content.get("version") != self.version or not isinstance(content["version"], int):
            raise self.error(
                f"{self.name} {path} has format version {content.get('version')!r:.40} and this perfmodel reads "
                f"{self.version}; use the perfmodel that wrote it, or {self.again}"
            )
        return content

    def damaged(self, path: str | os.PathLike[str], error: Exception) -> PerfmodelError:
        """Returns the error of a document whose content is not what it has to be."""
        return self.error(f"{self.name} {path} is damaged ({json_values.reason(error)}); {self.mend}")
