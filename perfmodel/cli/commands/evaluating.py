"""The command ``evaluate`` prints predictions of a calibration beside measured times."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from perfmodel.basics.errors import PerfmodelError, StoreError
from perfmodel.basics.version import VERSION
from perfmodel.cli.commands import printing
from perfmodel.cli.commands.selection import sets_to_measure, store_beside
from perfmodel.cli.options import (
    Command,
    calibration_option,
    condition_options,
    json_option,
    kernel_options,
)

if TYPE_CHECKING:
    from perfmodel.basics.statistics import Errors
    from perfmodel.modelling.calibration import Calibration
    from perfmodel.modelling.evaluation import Evaluation


def add(command: Command) -> None:
    added = command(
        _evaluate,
        "evaluate",
        "perfmodel evaluate madd.json matmul_sq n:384,640 --store times.sqlite --fail-above 15",
    )
    calibration_option(added)
    kernel_options(added, "+")
    condition_options(
        added,
        store="beside the calibration; none for a shipped one",
        protocol="the calibration's",
        device="key, part of the name, 'gpu' or 'cpu' (default: the calibration's)",
    )
    added.add_argument(
        "--fail-above",
        type=float,
        metavar="PERCENT",
        help="exit with status 1 if the geometric mean of the errors is larger; the store keeps a history",
    )
    json_option(added)


def _evaluate(parsed: argparse.Namespace) -> int:
    from perfmodel.modelling.calibration import calibration_called  # keeps start-up quick
    from perfmodel.modelling.evaluation import evaluate
    from perfmodel.report.evaluation_table import as_text

    limit = parsed.fail_above
    if limit is not None and not limit >= 0:
        raise PerfmodelError(f"--fail-above {limit:g} is no error; give percent, 0 or more")
    calibration = calibration_called(parsed.calibration)
    if not parsed.store and Path(parsed.calibration).is_file():
        parsed.store = store_beside(parsed.calibration)
    device = parsed.device or os.environ.get("PERFMODEL_DEVICE")
    (kernels,) = sets_to_measure(parsed, [parsed.tags])
    found = evaluate(calibration, kernels, device=device, store=parsed.store, protocol=parsed.protocol)
    named = {"calibration": parsed.calibration, "store": parsed.store}
    printing.found(parsed, lambda: named | found.as_json(), lambda: as_text(found))
    if limit is None:
        return 0
    errors = found.over_all
    if errors is None:
        raise PerfmodelError("no kernel has both times, so there is no error to hold against --fail-above; give others")
    if parsed.store:
        print(_kept(parsed, calibration, found, errors), file=sys.stderr if parsed.json else None)
    if errors.geometric_mean * 100 > limit:
        print(f"perfmodel: the geometric mean, {errors.geometric_mean:.1%}, is above {limit:g}%", file=sys.stderr)
        return 1
    return 0


def _kept(parsed: argparse.Namespace, calibration: Calibration, found: Evaluation, errors: Errors) -> str:
    """Adds the errors to the history in the store; returns a line on it, or on why nothing was added."""
    from datetime import UTC, datetime  # keeps start-up quick

    from perfmodel.measuring.store import Store, StoredEvaluation
    from perfmodel.measuring.store.evaluations import digest_of
    from perfmodel.report.history import latest_as_text

    each = StoredEvaluation(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        version=VERSION,
        calibration=Path(parsed.calibration).name,
        digest=digest_of(calibration.as_json()),
        device=str(found.device.get("key", "")),
        device_name=str(found.device.get("name", "")),
        protocol=str(found.protocol.get("name", "")),
        kernels=" ".join([*parsed.tags, *(parsed.at or [])]),
        count=errors.count,
        geometric_mean=errors.geometric_mean,
        mean=errors.mean,
        maximum=errors.maximum,
        within_30_percent=errors.within_30_percent,
        limit=parsed.fail_above / 100,
    )
    try:
        with Store(parsed.store) as store:
            store.put_evaluations([each])
            return latest_as_text([known for known in store.evaluations() if known.series == each.series])
    except StoreError as error:
        return f"history: not kept, as {error}"
