"""Finds out what the units of processors' cores take, and adds that to the calibration that comes along.

``python -m benchmarks.core_prices --base FILE --out FILE --times STORE DEVICE FACTS TARGET [--times …]`` takes kernels
of the processor model's families that stores have times of, on one processor or several, counts them as the machine
code that Intel's driver makes of them for each, and fits the prices of machine code (``p_core_…``), once for all
processors, as their facts scale them. All other prices stay those of the calibration that comes along, carried over to
each. What is written is that calibration with these prices as well, and with the errors of families that were left out
of this fit beside those that it had.

TARGET is what the driver calls an architecture (``core-avx2``, ``skx``): code can be made for another than this
machine's, which its times need not be measured for.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

import perfmodel as pm
from perfmodel.basics.json_values import plain
from perfmodel.basics.statistics import Errors
from perfmodel.basics.tables import grid, percent
from perfmodel.device import find_device
from perfmodel.device.facts import DeviceFacts, device_facts
from perfmodel.device.processor import Processor
from perfmodel.kernels.driver_code import TARGET
from perfmodel.measuring.store import Store
from perfmodel.modelling.intervals import LeftOutErrors, held_out_errors, sensitivities
from perfmodel.models.cpu import Cpu, bounds_on, model_of
from perfmodel.recipes.recipe import recipe
from perfmodel.recipes.running import kernels_of

Floats = NDArray[np.float64]

LEAST_S = 20e-6
OF_CODE = re.compile(r"p_core_\w+|p_ports")
SCORES = 401
XEON = 2, 4.1e9
"""Cores and clock of the processor whose calibration comes along."""
BEGIN = bounds_on(*XEON)
KNOWN_WITHIN = 0.7
"""The standard deviation of what is known beforehand of the logarithm of each price (`perfmodel.models.cpu.CYCLES`)."""
USUAL_ERROR = 0.3
"""Logarithms of measured over predicted beyond this count less (the loss ``cauchy``), as the machine code of some
kernels is read wrongly."""


@dataclass(frozen=True)
class Measured:
    """Holds what is known of N kernels on one processor.

    Attributes:
        calibration: carried over to it.
        ratios: of each price of machine code there to that on the calibrated processor.
        columns: the features, shape (N,) each.
        seconds: what the kernels took, shape (N,).
        families: of the kernels, shape (N,).
    """

    calibration: pm.Calibration
    ratios: Mapping[str, float]
    columns: Mapping[str, Floats]
    seconds: Floats
    families: NDArray[Any]

    def parameters(self, logarithms: Floats) -> dict[str, float]:
        """Returns all parameters there, with prices of machine code whose logarithms on the calibrated processor these
        are."""
        prices = {
            name: ratio * float(np.exp(logarithm))
            for (name, ratio), logarithm in zip(self.ratios.items(), logarithms, strict=True)
        }
        return {**self.calibration.parameters, **prices}

    def predicted(self, logarithms: Floats) -> Floats:
        compiled = self.calibration.model.string.compile()
        return np.asarray(compiled(self.parameters(logarithms), self.columns), dtype=np.float64)

    def sensitivities(self, logarithms: Floats) -> dict[str, Floats]:
        model, parameters = self.calibration.model.string, self.parameters(logarithms)
        return sensitivities(model, parameters, self.columns, len(self.seconds))


def extended(base: dict[str, Any]) -> dict[str, Any]:
    """Returns a calibration with the prices of machine code that the model begins with, in the place of its own."""
    sizes = {name: int(value) for name, value in re.findall(r"\$\{(\w+)=(\d+)\}", base["model"]["expression"])}
    known = Processor(sizes["subgroup"], sizes["l1_bytes"], sizes["l2_bytes"], sizes["l3_bytes"])
    content: dict[str, Any] = json.loads(json.dumps(base))
    given = {name: said for name, said in content["model"]["parameters"].items() if not OF_CODE.fullmatch(name)}
    given |= {name: BEGIN[name] for name in BEGIN if OF_CODE.fullmatch(name)}
    model = pm.Model(content["model"]["output"], model_of(known), parameters=given, meanings=Cpu.meanings["cpu"])
    content["model"] |= {
        "expression": model_of(known),
        "parameters": given,
        "meanings": {name: meaning.as_json() for name, meaning in model.meanings.items()},
    }
    order, before = list(model.parameters), list(base["parameters"])
    kept = [name for name in before if not OF_CODE.fullmatch(name)]
    content["parameters"] = {name: base["parameters"][name] if name in kept else BEGIN[name]["value"] for name in order}
    content["stderr"] = {name: base["stderr"][name] if name in kept else 0.0 for name in order}
    covariance = np.zeros((len(order), len(order)))
    old, new = ([names.index(name) for name in kept] for names in (before, order))
    covariance[np.ix_(new, new)] = np.array(base["covariance"], dtype=np.float64)[np.ix_(old, old)]
    content["covariance"] = covariance.tolist()
    content["undetermined"] = [each for each in base["undetermined"] if not OF_CODE.match(each)]
    content["marks"] = {name: mark for name, mark in base["marks"].items() if name in kept}
    content["held_out_errors"] = of_source(base["held_out_errors"])
    return content


def of_source(errors: dict[str, Any]) -> dict[str, Any]:
    """Returns the held-out errors without those of kernels that were counted as machine code."""
    prices = [place for place, name in enumerate(errors["parameters"]) if OF_CODE.fullmatch(name)]
    kept = [not any(row[place] for place in prices) for row in errors["elasticities"]]
    found = {
        key: [each for each, is_kept in zip(errors[key], kept, strict=True) if is_kept]
        for key in ("elasticities", "counts", "errors")
    }
    return errors | found | {"count": round(sum(found["counts"]))}


def measured(
    base: pm.Calibration, store: Path, name: str, facts: DeviceFacts | None, target: str, part: int
) -> Measured:
    """Returns some of a store's kernels, counted as machine code for an architecture.

    Args:
        facts: of the processor; None for the calibrated one.
        part: every so-manieth kernel is taken, by chance.
    """
    there = base.on(facts) if facts else base
    chosen = recipe("cpu")
    os.environ[TARGET] = target
    with Store(store, read_only=True) as times:
        device = find_device(name, times.devices())
        options = {"device": device, "store": times, "protocol": chosen.protocol}
        found = kernels_of(chosen, [there.model], options, [])
        kernels = [each for some in found.values() for each in some]
        order = np.random.default_rng(0).permutation(len(kernels))[::part]
        some = [kernels[number].as_core_code() for number in sorted(order)]
        table = pm.measure(some, there.model, device=device, store=times, protocol=chosen.protocol, progress=False)
    table = table[(table[chosen.output] >= LEAST_S) & (table[there.model.columns["f_core_known"]] > 0)]
    table = table[[not flags for flags in table["flags"]]]
    return Measured(
        calibration=there,
        ratios={each: there.parameters[each] / base.parameters[each] for each in BEGIN if OF_CODE.fullmatch(each)},
        columns={each: table[column].to_numpy(dtype=np.float64) for each, column in there.model.columns.items()},
        seconds=table[chosen.output].to_numpy(dtype=np.float64),
        families=table["kernel"].to_numpy(),
    )


def fitted(parts: Sequence[Measured], without: str = "") -> tuple[Floats, Floats]:
    """Returns the logarithms of the prices on the calibrated processor, and their covariance.

    Args:
        without: a family that is left out.
    """
    names = list(parts[0].ratios)
    begin = np.log([BEGIN[name]["value"] for name in names])
    rows = [part.families != without for part in parts]

    def residuals(logarithms: Floats) -> Floats:
        errors = [
            np.log(part.predicted(logarithms) / part.seconds)[kept] / USUAL_ERROR
            for part, kept in zip(parts, rows, strict=True)
        ]
        return np.concatenate([*errors, (logarithms - begin) / KNOWN_WITHIN])

    def slopes(logarithms: Floats) -> Floats:
        found = []
        for part, kept in zip(parts, rows, strict=True):
            each = part.sensitivities(logarithms)
            found.append(np.array([each[name][kept] for name in names]).T / USUAL_ERROR)
        return np.concatenate([*found, np.eye(len(names)) / KNOWN_WITHIN])

    bounds = np.log([[BEGIN[name][end] for name in names] for end in ("min", "max")])
    found = least_squares(residuals, begin, slopes, bounds=tuple(bounds), loss="cauchy")
    return found.x, np.linalg.inv(found.jac.T @ found.jac)


def merged(base: dict[str, Any], parts: Sequence[Measured]) -> dict[str, Any]:
    """Returns a calibration with prices of machine code that fit all processors at once."""
    content: dict[str, Any] = json.loads(json.dumps(base))
    names, order = list(parts[0].ratios), list(content["parameters"])
    logarithms, of_logarithms = fitted(parts)
    prices = np.exp(logarithms)
    content["parameters"] |= dict(zip(names, prices.tolist(), strict=True))
    own = of_logarithms * np.outer(prices, prices)
    content["stderr"] |= dict(zip(names, np.sqrt(np.diag(own)).tolist(), strict=True))
    covariance = np.array(content["covariance"], dtype=np.float64)
    places = [order.index(name) for name in names]
    covariance[np.ix_(places, places)] = own
    content["covariance"] = covariance.tolist()
    for part in parts:
        for name, column in part.columns.items():
            if name.startswith("f_core_") or name not in base["ranges"]:
                low, high = content["ranges"].get(name, (np.inf, 0.0))
                content["ranges"][name] = [min(low, float(column.min())), max(high, float(column.max()))]
    content["marks"] |= {
        name: "(at its bound)"
        for name, price in zip(names, prices, strict=True)
        if min(price / BEGIN[name]["min"], BEGIN[name]["max"] / price) < 1 + 1e-3
    }
    found = left_out(parts, logarithms)
    of_code = held_out_errors(found)
    assert of_code is not None  # there are families
    content["held_out_errors"] = together(content["held_out_errors"], of_code.as_json())
    print(table_of(parts, logarithms, found))
    return content


def left_out(parts: Sequence[Measured], logarithms: Floats) -> LeftOutErrors:
    """Returns the errors of all processors' kernels, each predicted by a fit to other families than its own."""
    errors = [np.full(len(part.seconds), np.nan) for part in parts]
    for family in sorted({family for part in parts for family in part.families.tolist()}):
        others, _ = fitted(parts, family)
        for part, found in zip(parts, errors, strict=True):
            own = part.families == family
            found[own] = np.log(part.seconds / part.predicted(others))[own]
    each = [part.sensitivities(logarithms) for part in parts]
    return LeftOutErrors.of(
        "families",
        np.concatenate([part.families for part in parts]),
        np.concatenate(errors),
        {name: np.concatenate([some[name] for some in each]) for name in each[0]},
    )


def table_of(parts: Sequence[Measured], logarithms: Floats, found: LeftOutErrors) -> str:
    """Returns a table of errors by processor: as fitted, and of families that were left out."""
    ends = np.cumsum([len(part.seconds) for part in parts])[:-1]
    lines = []
    for part, without in zip(parts, np.split(found.logarithms, ends), strict=True):
        for label, ratios in (
            ("fitted", part.predicted(logarithms) / part.seconds),
            ("families left out", np.exp(-without)),
        ):
            errors = Errors.of(np.abs(ratios - 1))
            assert errors is not None
            figures = (errors.geometric_mean, errors.mean, errors.maximum, errors.within_30_percent)
            name = str(part.calibration.device["name"])
            lines.append([name, label, str(len(ratios)), *map(percent, figures), f"{np.median(ratios):.2f}"])
    return grid(["processor", "", "times", "geometric mean", "mean", "maximum", "within 30 %", "median"], lines)


def together(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """Returns the held-out errors of two sets of measurements as those of one."""
    names = [*left["parameters"], *(name for name in right["parameters"] if name not in left["parameters"])]

    def rows(part: dict[str, Any]) -> list[list[float]]:
        places = {name: place for place, name in enumerate(part["parameters"])}
        return [
            [round(row[places[name]], 4) if name in places else 0.0 for name in names] for row in part["elasticities"]
        ]

    counts = left["count"], right["count"]
    scores = np.sort(
        np.concatenate([np.repeat(part["scores"], max(1, round(part["count"] / 100))) for part in (left, right)])
    )

    def mean(key: str) -> float:
        return float(np.average([left[key], right[key]], weights=counts))

    return left | {
        "count": sum(counts),
        "usual": mean("usual"),
        "slope": mean("slope"),
        "shared": mean("shared"),
        "covered": {
            k: float(np.average([left["covered"][k], right["covered"][k]], weights=counts)) for k in left["covered"]
        },
        "scores": np.quantile(scores, np.linspace(0, 1, SCORES)).tolist(),
        "parameters": names,
        "elasticities": rows(left) + rows(right),
        "counts": left["counts"] + right["counts"],
        "errors": left["errors"] + right["errors"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="prices of machine code, by times of one processor or several")
    parser.add_argument("--base", type=Path, required=True, help="the calibration that comes along")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--times",
        nargs=4,
        action="append",
        required=True,
        metavar=("STORE", "DEVICE", "FACTS", "TARGET"),
        help="the facts' file, or - for the calibrated processor",
    )
    parser.add_argument("--part", type=int, default=6, help="every so-manieth kernel is taken, by chance (default: 6)")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    begun = extended(json.loads(arguments.base.read_text(encoding="utf-8")))
    arguments.out.write_text(json.dumps(plain(begun)), encoding="utf-8")
    base = pm.Calibration.load(arguments.out)
    parts = []
    for store, name, facts, target in arguments.times:
        known = None if facts == "-" else device_facts(facts)
        parts.append(measured(base, Path(store), name, known, target, arguments.part))
        print(f"{name}: {len(parts[-1].seconds)} kernels", flush=True)
    arguments.out.write_text(json.dumps(plain(merged(begun, parts))), encoding="utf-8")
    print(pm.Calibration.load(arguments.out).held_out)


if __name__ == "__main__":
    main()
