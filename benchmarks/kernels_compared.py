"""Measures kernels of a table, or takes their times from a store, and predicts them by the calibration of a device."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import perfmodel as pm
from perfmodel.modelling.predictor import CalibratedModel


@dataclass(frozen=True)
class Compared:
    """Holds what kernels take on a device, in seconds, in their order.

    Attributes:
        device: its name.
        predicted: 0 where nothing is.
    """

    device: str
    measured: tuple[float, ...]
    predicted: tuple[float, ...]


def compared(kernels: Sequence[pm.Kernel], description: str) -> Compared:
    """Returns the times of kernels by what the command line asks for: what measures them, and a store."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", required=True, help="what measured the times, or is to do it")
    parser.add_argument("--store", required=True, help="where they are kept")
    parser.add_argument("--predict", default="h200", help="the device that the calibration is of (default: h200)")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    model = pm.Model("f_cl_wall_time", "p_launch * f_sync_kernel_launch")
    table = pm.measure(kernels, model, device=arguments.device, store=arguments.store, progress=False)
    predictor = CalibratedModel("gpu", pm.Calibration.shipped(device=arguments.predict))
    return Compared(
        device=table.attrs["device"]["name"],
        measured=tuple(table["f_cl_wall_time"].tolist()),
        predicted=tuple(float(each.seconds or 0.0) for each in predictor.predict(list(kernels))),
    )
