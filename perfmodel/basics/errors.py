"""Every error that perfmodel raises on purpose.

Each message is one sentence that names the culprit and the remedy; the command line prints it and exits with
status 2. docs/glossary.md has the words of messages. Anything that is not a `PerfmodelError` is a defect of perfmodel.
"""

from __future__ import annotations

from collections.abc import Iterable


class PerfmodelError(Exception):
    """Base of all errors caused by input, environment or data rather than by a defect."""


class PerfmodelWarning(UserWarning):
    """Is the base of all warnings: the work goes on, and its result is less than what was asked for."""


class ModelStringError(PerfmodelError):
    """Raised for a model string that is not in the language; the message shows line, column and a caret.

    Attributes:
        line: 1-based line of the culprit in the model string.
        column: 1-based column of the culprit.
    """

    def __init__(self, message: str, source: str = "", position: int = 0) -> None:
        before = source[:position]
        self.line = before.count("\n") + 1
        self.column = position - (before.rfind("\n") + 1) + 1
        self.reason = message
        super().__init__(
            f"{message} (line {self.line}, column {self.column})\n{_excerpt(source, self.line, self.column)}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__))


class FeatureError(PerfmodelError):
    """Raised for a feature name that no family understands, or a feature that a kernel cannot give.

    Attributes:
        offset: 0-based position of the culprit inside the feature's name, where there is one.
    """

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


class TagError(PerfmodelError):
    """Raised for a tag that no generator knows, or one whose value selects nothing."""


class GeneratorError(TagError):
    """Raised for a generator that is wrong in itself, whatever is asked of it."""


class KernelError(PerfmodelError):
    """Raised for a kernel that cannot be bound, counted, built or run as asked."""


class CountingError(KernelError):
    """Raised for a kernel whose counts cannot be derived."""


class DecidedByDataError(CountingError):
    """Raised for a kernel whose counts depend on data, of which nothing is said."""


class UnknownAddressError(CountingError):
    """Raised for a kernel that is not counted for all sizes, as only sizes that are numbers tell where it accesses
    memory."""


class OutOfBudgetError(CountingError):
    """Raised for a kernel whose counts need more work than is spent on one, see `perfmodel.counting.budget`."""


class SourceError(KernelError):
    """Raised for OpenCL C source that cannot be read; says what is wrong, and where.

    Attributes:
        file, line, column: of the culprit in the user's source, 1-based.
        reason: the message without file, line and column.
    """

    def __init__(self, reason: str, file: str = "", line: int = 0, column: int = 0) -> None:
        self.reason, self.file, self.line, self.column = reason, file, line, column
        super().__init__(f"{file}:{line}:{column}: {reason}" if line else f"{file}: {reason}" if file else reason)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.reason, self.file, self.line, self.column))


class EmulationError(KernelError):
    """Raised for a kernel whose emulation cannot go on."""


class DeviceError(PerfmodelError):
    """Raised for a device that is not there, is ambiguous, or whose driver does not load."""


class MeasurementError(PerfmodelError):
    """Raised for a measurement that failed or gave times that mean nothing."""


class StoreError(PerfmodelError):
    """Raised for a measurement store that cannot be opened, read or written."""


class SurveyError(PerfmodelError):
    """Raised for a survey of kernels whose description is not understood, or that cannot be run as asked."""


class FitError(PerfmodelError):
    """Raised for a fit that cannot be done with the given measurements."""


class CalibrationError(PerfmodelError):
    """Raised for a calibration file that is damaged or does not fit the kernel or model."""


def one_line(error: BaseException) -> str:
    """Returns what an error says, in one line that can be printed, however long it is."""
    return " ".join(str(error).encode("utf-8", "replace").decode().split())[:300]


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns a phrase such as ``; did you mean 'a' or 'b'?`` for a misspelt name, empty where nothing is near."""
    import difflib  # slow to import, and only mistakes need it

    close = difflib.get_close_matches(name, sorted(set(known)), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def _excerpt(source: str, line: int, column: int) -> str:
    """Returns the culprit's line with a caret below it, shortened around the caret to 96 characters."""
    width = 96
    lines = source.split("\n")
    text = lines[line - 1] if line <= len(lines) else ""
    start = max(0, column - 1 - width // 2)
    shown = "".join(ch if ch.isprintable() else " " for ch in text[start : start + width])
    return f"    {shown}\n    {' ' * (column - 1 - start)}^"


def _rebuild(cls: type[ModelStringError], args: tuple[object, ...], state: dict[str, object]) -> ModelStringError:
    error = cls.__new__(cls)
    Exception.__init__(error, *args)
    error.__dict__.update(state)
    return error
