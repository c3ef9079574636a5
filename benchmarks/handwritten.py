"""Judges how well a calibration predicts kernels written by hand in OpenCL C, beside those of the generators.

    python -m benchmarks.handwritten unified-plus --device h200 --store handwritten.sqlite

Both compute the same from the same arrays, and both are measured. The calibration knows the generators' families only.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import perfmodel as pm
from benchmarks.opencl_c import Handwritten, kernels
from perfmodel.basics.statistics import Errors, geometric_mean
from perfmodel.basics.tables import grid, percent, seconds, sizes_text
from perfmodel.device import find_device
from perfmodel.report.tables import ERRORS, error_cells

warnings.simplefilter("ignore")


@dataclass(frozen=True)
class Form:
    """One of the two forms of a kernel at one size; `why` is the reason if there is no error."""

    measured: float
    predicted: float
    why: str

    @property
    def has_error(self) -> bool:
        return not self.why and math.isfinite(self.measured)

    @property
    def error(self) -> float:
        return abs(self.predicted / self.measured - 1)

    def cells(self) -> list[str]:
        shown = f"{self.predicted / self.measured - 1:+.0%}" if self.has_error else self.why[:40] or "-"
        return [*(seconds(t) if math.isfinite(t) else "-" for t in (self.measured, self.predicted)), shown]


@dataclass(frozen=True)
class Pair:
    """Both forms of a kernel at one size."""

    kernel: Handwritten
    sizes: Mapping[str, int]
    written: Form
    generated: Form


def main() -> None:
    parser = argparse.ArgumentParser(description="errors of a calibration on kernels written by hand")
    parser.add_argument("calibration", help="a file, or the name of a model whose calibration is shipped")
    parser.add_argument("--device")
    parser.add_argument("--store")
    parser.add_argument("--family", action="append", help="only kernels of this family; may be repeated")
    parser.add_argument("--small", action="store_true", help="at the sizes of the tests, to see that it runs")
    parsed = parser.parse_args()
    calibration = _calibration(parsed.calibration, parsed.device)
    chosen = [kernel for kernel in kernels() if not parsed.family or kernel.generator in parsed.family]
    cases = [(kernel, sizes) for kernel in chosen for sizes in ((kernel.small,) if parsed.small else kernel.sizes)]
    both = [kernel.both(sizes) for kernel, sizes in cases]
    if not both:
        parser.error(f"no kernel is of family {', '.join(parsed.family)}")
    every = [form for pair in both for form in pair]
    table = pm.measure(every, calibration.model, device=parsed.device, store=parsed.store)
    forms = [
        _form(calibration, form, time, flags)
        for form, time, flags in zip(every, table["f_cl_wall_time"], table["flags"], strict=True)
    ]
    pairs = [Pair(*case, *two) for case, *two in zip(cases, forms[::2], forms[1::2], strict=True)]
    print(_times(pairs))
    print(f"\non {table.attrs['device']['name']}\n\n{_families(pairs)}")


def _calibration(given: str, device: str | None) -> pm.Calibration:
    if Path(given).is_file():
        return pm.Calibration.load(given)
    return pm.Calibration.shipped(given, device=device or find_device(None).key)


def _form(calibration: pm.Calibration, kernel: pm.Kernel, time: float, flags: Sequence[str]) -> Form:
    try:
        return Form(time, float(calibration.predict(kernel)), ", ".join(flags))
    except pm.PerfmodelError as error:
        return Form(time, math.nan, str(error))


def _times(pairs: Sequence[Pair]) -> str:
    header = ["family", "kernel", "variant", "size", "measured (by hand)", "predicted", "error"]
    header += ["measured (generator)", "predicted", "error"]
    return grid(
        header,
        [
            [
                *(pair.kernel.generator, pair.kernel.name, pair.kernel.variant, sizes_text(pair.sizes)),
                *pair.written.cells(),
                *pair.generated.cells(),
            ]
            for pair in pairs
        ],
    )


def _families(pairs: Sequence[Pair]) -> str:
    """Returns errors by family and over the families, of what has both errors."""
    complete = [pair for pair in pairs if pair.written.has_error and pair.generated.has_error]
    if not complete:
        return "no kernel has both errors"
    by_family: dict[str, list[Pair]] = {}
    for pair in complete:
        by_family.setdefault(pair.kernel.generator, []).append(pair)
    means = {family: _means(found) for family, found in by_family.items()}
    over_all = tuple(geometric_mean(list(column)) for column in zip(*means.values(), strict=True))
    rows = [_row(family, len(by_family[family]), mean) for family, mean in means.items()]
    rows.append(_row("geometric mean of these", len(complete), over_all))
    forms = zip(("by hand", "generator"), _columns(complete), strict=True)
    every = [
        [name, str(len(column)), *error_cells(Errors.figures([f.error for f in column]))] for name, column in forms
    ]
    families = grid(["geometric mean error", "times", "by hand", "generator", "difference"], rows)
    return f"{families}\n\n{grid(['error over all', 'times', *ERRORS], every)}"


def _columns(pairs: Sequence[Pair]) -> tuple[list[Form], list[Form]]:
    return [pair.written for pair in pairs], [pair.generated for pair in pairs]


def _means(pairs: Sequence[Pair]) -> tuple[float, ...]:
    return tuple(geometric_mean([form.error for form in column]) for column in _columns(pairs))


def _row(name: str, count: int, means: Sequence[float]) -> list[str]:
    return [name, str(count), *map(percent, means), _points(*means)]


def _points(written: float, generated: float) -> str:
    return f"{100 * (written - generated):+.1f} points"


if __name__ == "__main__":
    main()
