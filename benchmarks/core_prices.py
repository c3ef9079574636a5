"""Finds out what the units of a processor's cores take, and adds that to the calibration that comes along.

``python -m benchmarks.core_prices STORE --device KEY --base models/cpu@KEY.json --out FILE`` takes kernels of the
processor model's families that a store has times of on this machine's processor, counts them as machine code that
Intel's driver makes of them here, and fits the prices of machine code (``p_core_…``); all other prices stay those of
the calibration that comes along, carried over to this processor. What is written is that calibration with these prices
as well, carried back to its own processor, and with the errors of families that were left out of this fit beside those
that it had.
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import perfmodel as pm
from perfmodel.basics.errors import CalibrationError
from perfmodel.basics.json_values import plain
from perfmodel.device import find_device
from perfmodel.device.processor import Processor
from perfmodel.device.processor_here import facts_here
from perfmodel.measuring.store import Store
from perfmodel.models.cpu import Cpu, bounds_on, model_of
from perfmodel.recipes.recipe import recipe
from perfmodel.recipes.running import kernels_of

LEAST_S = 20e-6
OF_CODE = re.compile(r"p_core_\w+|p_ports")
SCORES = 401
XEON = 2, 4.1e9
"""Cores and clock of the processor whose calibration comes along."""
BOUNDS = bounds_on(*XEON)


def extended(base: dict[str, Any]) -> dict[str, Any]:
    """Returns a calibration with the prices of machine code that the model begins with, if it has none."""
    sizes = {name: int(value) for name, value in re.findall(r"\$\{(\w+)=(\d+)\}", base["model"]["expression"])}
    known = Processor(sizes["subgroup"], sizes["l1_bytes"], sizes["l2_bytes"], sizes["l3_bytes"])
    meanings = Cpu.meanings["cpu"]
    content: dict[str, Any] = json.loads(json.dumps(base))
    content["model"]["expression"] = model_of(known)
    content["model"]["parameters"] |= {name: BOUNDS[name] for name in BOUNDS if OF_CODE.fullmatch(name)}
    model = pm.Model(
        content["model"]["output"], model_of(known), parameters=content["model"]["parameters"], meanings=meanings
    )
    content["model"]["meanings"] = {name: meaning.as_json() for name, meaning in model.meanings.items()}
    order = list(model.parameters)
    places = [order.index(name) for name in base["parameters"]]
    content["parameters"] = {
        name: base["parameters"][name] if name in base["parameters"] else BOUNDS[name]["value"] for name in order
    }
    content["stderr"] = {name: base["stderr"].get(name, 0.0) for name in order}
    covariance = np.zeros((len(order), len(order)))
    covariance[np.ix_(places, places)] = np.array(base["covariance"], dtype=np.float64)
    content["covariance"] = covariance.tolist()
    return content


def main() -> None:
    parser = argparse.ArgumentParser(description="prices of machine code on this machine's processor")
    parser.add_argument("store", type=Path)
    parser.add_argument("--device", required=True, help="whose times the store has: this machine's processor")
    parser.add_argument("--base", type=Path, required=True, help="the calibration that comes along")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", type=int, default=3, help="every so-manieth kernel is taken, by chance (default: 3)")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    facts = facts_here()
    if facts is None:
        raise CalibrationError("the system does not tell this machine's processor; run this where it does")
    begun = extended(json.loads(arguments.base.read_text(encoding="utf-8")))
    arguments.out.write_text(json.dumps(plain(begun)), encoding="utf-8")
    here = pm.Calibration.load(arguments.out).on(facts)
    ratios = {
        name: here.parameters[name] / begun["parameters"][name]
        for name in begun["parameters"]
        if OF_CODE.fullmatch(name)
    }
    with Store(arguments.store, read_only=True) as times:
        device = find_device(arguments.device, times.devices())
        chosen = recipe("cpu")
        options = {"device": device, "store": times, "protocol": chosen.protocol}
        found = kernels_of(chosen, [here.model], options, [])
        kernels = [each for part in found.values() for each in part]
        order = np.random.default_rng(0).permutation(len(kernels))[:: arguments.part]
        some = [kernels[number].as_core_code() for number in sorted(order)]
        table = pm.measure(some, here.model, device=device, store=times, protocol=chosen.protocol, progress=False)
    table = table[(table[chosen.output] >= LEAST_S) & (table[here.model.columns["f_core_known"]] > 0)]
    given: dict[str, Any] = dict(here.parameters)
    for name, ratio in ratios.items():
        given[name] = {bound: value * ratio for bound, value in BOUNDS[name].items()}
    fitted = here.model.fit(table, parameters=given, residuals="logarithmic")
    print(fitted)
    written = merged(begun, fitted, ratios)
    arguments.out.write_text(json.dumps(plain(written)), encoding="utf-8")
    print(pm.Calibration.load(arguments.out).on(facts).held_out)


def merged(base: dict[str, Any], fitted: pm.Calibration, ratios: dict[str, float]) -> dict[str, Any]:
    """Returns a calibration with prices of machine code that another processor has, so many times those of its own."""
    content: dict[str, Any] = json.loads(json.dumps(base))
    order = list(content["parameters"])
    covariance = np.array(content["covariance"], dtype=np.float64)
    own = list(fitted.parameters)
    for name, ratio in ratios.items():
        content["parameters"][name] = fitted.parameters[name] / ratio
        content["stderr"][name] = (fitted.stderr[name] or 0.0) / ratio
        for other, times in ratios.items():
            covariance[order.index(name), order.index(other)] = (
                fitted.covariance[own.index(name), own.index(other)] / ratio / times
            )
    content["covariance"] = covariance.tolist()
    content["ranges"] |= {name: each for name, each in fitted.as_json()["ranges"].items() if name.startswith("f_core_")}
    content["undetermined"] += [each for each in fitted.undetermined if OF_CODE.match(each)]
    # Bounds are of the processor that was measured.
    marks = {name: mark.split(",")[0].rstrip(")") + ")" for name, mark in fitted.marks.items()}
    content["marks"] |= {name: mark for name, mark in marks.items() if OF_CODE.fullmatch(name)}
    content["held_out_errors"] = together(of_source(content["held_out_errors"]), fitted.as_json()["held_out_errors"])
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
        "groups": left["groups"],
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


if __name__ == "__main__":
    main()
