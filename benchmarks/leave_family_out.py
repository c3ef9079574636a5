"""How well unified-plus predicts each family of its measurement set from a fit to all the others.

    xz -dk docs/results/unified-plus-nvidia-h200-e38dd1/measurements.sqlite.xz
    python -m benchmarks.leave_family_out docs/results/unified-plus-nvidia-h200-e38dd1/measurements.sqlite --units 132

It needs no device: the times are those of the store.
"""

from __future__ import annotations

import argparse
import sqlite3
import warnings

import numpy as np

import perfmodel as pm
from perfmodel.collection import ALL_GENERATORS, KernelCollection
from perfmodel.fitting import fit
from perfmodel.measurement import reduced
from perfmodel.models.unified import LARGE, measurement_classes
from perfmodel.models.unified_plus import FILTERS, MODEL, SIZES
from perfmodel.report.tables import grid
from perfmodel.store import Store
from perfmodel.summary import BAND, geometric_mean
from perfmodel.vocabulary import number

warnings.simplefilter("ignore")


def stored(path: str) -> dict[tuple[str, tuple[tuple[str, int], ...]], tuple[float, tuple[str, ...]]]:
    """Seconds and flags by program and sizes, of all devices' measurements in the store."""
    with sqlite3.connect(path) as database:
        keys = [key for (key,) in database.execute("SELECT key FROM measurement")]
    with Store(path) as store:
        records = store.get_many(keys).values()
    return {
        (r.content, tuple(sorted(r.sizes.items()))): (reduced(r.trials, r.dropped, r.statistic), tuple(r.flags))
        for r in records
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="cross-validation of unified-plus over families of kernels")
    parser.add_argument("store")
    parser.add_argument("--units", type=int, required=True, help="the device's compute units")
    parsed = parser.parse_args()
    times, model = stored(parsed.store), pm.Model("f_cl_wall_time", MODEL)
    filters = [*measurement_classes(LARGE).values(), *(s.split() for s in FILTERS.format(**SIZES[True]).splitlines())]
    collection = KernelCollection(ALL_GENERATORS)
    kernels = dict.fromkeys(kernel for tags in filters for kernel in collection.generate_kernels(tags))
    found = {k: times.get((k.program.content, tuple(sorted(k.sizes.items())))) for k in kernels}
    rows = [(k, t[0]) for k, t in found.items() if t and (not t[1] or not k.launch().arrays())]
    seconds = np.array([t for _, t in rows])
    columns = {name: np.array([number(f, k) for k, _ in rows]) for name, f in model.features.items()}
    families = np.array([k.name for k, _ in rows])
    bounds = {"p_units": (float(parsed.units), float(parsed.units))}
    everything = np.zeros(len(rows))
    lines = []
    for family in sorted(set(families)):
        inside, outside = families == family, families != family
        fitted = fit(
            model.string,
            {name: column[outside] for name, column in columns.items()},
            seconds[outside],
            bounds=bounds,
            residuals="logarithmic",
        )
        predicted = model.string.compile()(fitted.parameters, {n: c[inside] for n, c in columns.items()})
        errors = everything[inside] = np.abs(predicted / seconds[inside] - 1)
        lines.append(
            [family, str(inside.sum()), f"{geometric_mean(errors.tolist()):.1%}", f"{np.mean(errors <= BAND):.0%}"]
        )
    lines.append(
        ["all", str(len(rows)), f"{geometric_mean(everything.tolist()):.1%}", f"{np.mean(everything <= BAND):.0%}"]
    )
    print(grid(["family left out", "kernels", "geometric mean error", "within 30 %"], lines))


if __name__ == "__main__":
    main()
