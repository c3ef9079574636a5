"""The option ``--learn`` of ``perfmodel run``: the times of a program make a calibration better, which is kept."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfmodel.basics.errors import PerfmodelError
from perfmodel.cli.commands.selection import check_writable

if TYPE_CHECKING:
    from perfmodel.interception.launches import Launches
    from perfmodel.modelling.calibration import Calibration
    from perfmodel.modelling.learned import Learned

OPTION = "--learn"


def learn_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        OPTION,
        metavar="FILE.json",
        help="let the calibration in this file, or that of --predict where there is none yet, learn from the times of "
        "all launches, and keep it in the file",
    )


@dataclass(frozen=True)
class Student:
    """A calibration that is to learn, and the file in which it is kept."""

    calibration: Calibration
    file: Path

    def learned(self, groups: Sequence[Launches]) -> Learned:
        """Returns what was learned from launches, after keeping it."""
        from perfmodel.interception.learning import learned  # keeps start-up quick

        found = learned(groups, self.calibration)
        found.after.save(self.file)
        return found


def student(parsed: argparse.Namespace) -> Student | None:
    """Returns the calibration that is to learn; None where the options ask for none.

    Raises:
        PerfmodelError: there is neither the file nor a calibration that predicts.
    """
    from perfmodel.modelling.calibration import calibration_called  # keeps start-up quick

    if parsed.learn is None:
        return None
    check_writable(parsed.learn, OPTION)
    file = Path(parsed.learn).resolve()  # the program may go elsewhere
    named = [parsed.predict] if isinstance(parsed.predict, str) else list(parsed.predict or ())
    if not file.exists() and not named:
        raise PerfmodelError(f"{OPTION} {parsed.learn} is no file yet; say by --predict which calibration is to learn")
    return Student(calibration_called(str(file) if file.exists() else named[0]), file)
