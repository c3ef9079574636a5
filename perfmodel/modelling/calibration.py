"""Model and Calibration: what is declared and fitted, and what comes of a fit, each of which leads to the other.

A calibration is a model's parameters on one device, with all that is needed to predict, doubt and repeat them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfmodel.basics import json_values
from perfmodel.basics.brief import brief, number_of
from perfmodel.basics.errors import CalibrationError, FeatureError, FitError, ModelStringError, nearest
from perfmodel.device.facts import DeviceFacts, keys_of_known
from perfmodel.kernels.kernel import Kernel, as_kernel, as_kernels
from perfmodel.modelling import notebook_plots, prediction
from perfmodel.modelling.calibration_file import FILE, checked_fields, checked_row, listed
from perfmodel.modelling.fitted import ROW, Fitted
from perfmodel.modelling.formula import Formula
from perfmodel.modelling.meaning import Meaning
from perfmodel.modelling.ranked import Ranking, rank
from perfmodel.modelling.shipped import default_models, shipped_files
from perfmodel.vocabulary.named_features import Feature

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from perfmodel.modelling.advising import Advice
    from perfmodel.modelling.comparison import Comparison
    from perfmodel.modelling.explanation import Explanation


class Model(Formula):
    """T(n) = g(features(n), parameters), declared and checked, not yet fitted; immutable.

    Args:
        output: name of the feature to be predicted, e.g. ``f_cl_wall_time``.
        expression: the model string (docs/model-language.md).
        features: the model's own features, any objects with ``eval(knl)``, by the names they have in the string.
        parameters: what is known of parameters before a fit, by name: a number holds one at that value, ``(lower,
            upper)`` bounds it (None where open), and a text ties it to others: ``"2 * p_a"``; see docs/fitting.md.
        meanings: what terms and parameters stand for, by name: a text or a `Meaning`; see docs/model-language.md.

    Attributes:
        output: the output feature.
        features: the input features by name, in order of first appearance.
        parameters: names of the parameters, in order of first appearance.
        string: the parsed model string.
        declared: what is said of parameters before a fit, by name.
        meanings: what terms and parameters stand for, by name.
        further_features: features that only their meanings name, by name; explanations count them.

    Raises:
        ModelStringError: for a string that is not in the language or names an unknown feature.
        FeatureError: for an output that is no feature.
        FitError: for what cannot be said of parameters or terms.

    Two models are equal if output, string and features are, whatever is said of their parameters.
    """

    def fit(self, table: Any, **options: Any) -> Calibration:
        """Fits the parameters to a feature table.

        Args:
            table: as `perfmodel.measure` returns it; rows with flags are left out and listed in the calibration.
            options: of `perfmodel.modelling.fitting.fit`: parameters, beside those of the model and before them;
                nonnegative, residuals, strict.

        Raises:
            FitError: if the table cannot determine the model (see `perfmodel.modelling.fitting.fit`).
        """
        from perfmodel.modelling.calibrating import calibrate  # slow to import, and no prediction needs it

        return calibrate(Calibration, self, table, **options)


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Fitted):
    """A calibration is a fitted model on one device; it predicts without any OpenCL driver.

    Its attributes are those of `perfmodel.modelling.fitted.Fitted`.
    """

    model: Model

    @overload
    def predict(
        self, kernel: Kernel, /, *, return_std: Literal[False] = False, **sizes: ArrayLike
    ) -> NDArray[np.float64]: ...
    @overload
    def predict(
        self, kernel: Kernel, /, *, return_std: Literal[True], **sizes: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def predict(self, kernel: Kernel, /, *, return_std: bool = False, **sizes: ArrayLike) -> Any:
        """Predicts seconds at arrays of sizes.

        Args:
            sizes: numbers or arrays that broadcast against each other; the kernel's own sizes where left out.
            return_std: also the standard deviation of each prediction: half of the interval that holds 68 % of such
                predictions (see `interval`); NaN where it is not known.

        Returns:
            An array of the sizes' common shape, or two.

        Raises:
            KernelError, FeatureError: for sizes or kernels outside what they allow.
        """
        if not return_std:
            return prediction.predicted_seconds(self, as_kernel(kernel), sizes)
        predicted = prediction.predict(self, as_kernel(kernel), sizes)
        return predicted.seconds, predicted.std

    def interval(
        self, kernel: Kernel, level: float = 0.9, /, **sizes: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns times between which a prediction's measured time is expected to lie; see
        `perfmodel.modelling.intervals`.

        The interval is as wide as the errors of kernels that were left out of the fit, and the wider the less the
        kernel is like any that was measured.

        Args:
            level: the probability that the measured time lies within, between 0 and 1.
            sizes: as for `predict`.

        Returns:
            The lower and the upper ends in seconds, arrays of the sizes' common shape. The upper one is infinite where
            the kernel has something that the model has no price for, as no measurement had it; both say nothing (0 and
            infinity) where the calibration does not know how far it is off.

        Raises:
            KernelError, FeatureError: for sizes or kernels outside what they allow.
        """
        return prediction.predict(self, as_kernel(kernel), sizes).interval(level)

    def explain(self, kernel: Kernel, /, **sizes: int) -> Explanation:
        """Explains one prediction: its costs, what doubling each size changes, and how far it can be trusted."""
        from perfmodel.modelling.explanation import explain  # slow to import, and no prediction needs it

        return explain(self, as_kernel(kernel), sizes)

    def compare(self, first: Kernel, second: Kernel, /, **sizes: int) -> Comparison:
        """Explains the difference between the times of two kernels, cost by cost."""
        from perfmodel.modelling.comparison import compare  # slow to import, and no prediction needs it

        return compare(self, as_kernel(first), as_kernel(second), sizes)

    def advise(self, kernel: Kernel, /, **sizes: int) -> Advice:
        """Returns what to change in a kernel, found by predicting it changed: siblings of its generator, other
        work-groups and padded tiles of OpenCL C, and less of what it does, such as half the transactions.

        A few changed kernels are counted for that, which takes about as long for each as for the kernel itself.
        """
        from perfmodel.modelling.advising import advise  # slow to import, and no prediction needs it

        return advise(self, as_kernel(kernel), sizes)

    def rank(self, kernels: Iterable[Kernel], /, **sizes: int) -> Ranking:
        """Returns the kernels from the fastest predicted to the slowest, each with its prediction."""
        return rank(self, as_kernels(kernels), sizes)

    def on(self, device: DeviceFacts | str) -> Calibration:
        """Returns a calibration for a device of which nothing was measured, by the specifications of both.

        >>> Calibration.shipped(device="H200").on("rtx_4090").predict(kernel, n=4096)

        Each parameter is multiplied by the ratio of what its meaning says that it scales with, and numbers of the
        device in the model string become the other's; intervals are as much wider as such prices are less sure.

        Args:
            device: facts, the key of a device that comes along (`perfmodel.device.facts.known_devices`), or a file
                that ``perfmodel device new`` wrote.

        Raises:
            DeviceError: there is no such device.
            CalibrationError: the device is of another kind, or the model does not say what its parameters scale with.
        """
        from perfmodel.modelling.transfer import carried_over  # keeps start-up quick

        return carried_over(self, device)

    def with_device(self, facts: DeviceFacts) -> Calibration:
        """Returns the calibration with the facts of its device, where its name does not tell them, so that it can be
        carried over to others (see `on`)."""
        from perfmodel.modelling.transfer import SPECIFICATION  # keeps start-up quick

        return replace(self, device={**self.device, SPECIFICATION: facts.as_json()})

    def update(self, kernels: Kernel | Iterable[Kernel], seconds: ArrayLike, /, **sizes: int) -> Calibration:
        """Returns the calibration with what measured times say, one or many; it stays as it is itself.

        >>> calibration = Calibration.shipped(device="rtx_4090")
        >>> calibration = calibration.update(kernel, 1.3e-3, n=4096)

        The parameters' covariance is the prior, the errors on kernels that no fit has seen are the noise, and the
        result is the posterior (`perfmodel.modelling.learning`). So a calibration that was carried over by a
        specification learns much from few times, one that was fitted to many learns little.

        Args:
            kernels: one, or several.
            seconds: what each took, one number or as many.
            sizes: of all of them; each kernel's own where left out.

        Raises:
            CalibrationError: for times that are no positive numbers, or not one for each kernel.
            KernelError, FeatureError: for sizes or kernels outside what they allow.
        """
        from perfmodel.modelling.learning import updated  # keeps start-up quick

        return updated(self, [kernels] if isinstance(kernels, Kernel) else as_kernels(kernels), seconds, sizes)

    def as_json(self) -> dict[str, Any]:
        """Returns the calibration as values that JSON can hold; what is unknown is None."""
        declared = {name: each.given for name, each in self.model.declared.items()}
        meanings = {name: each.as_json() for name, each in self.model.meanings.items()}
        said = {name: each for name, each in (("parameters", declared), ("meanings", meanings)) if each}
        return {
            "format": FILE.format,
            "version": FILE.version,
            "model": {"output": self.model.output_name, "expression": self.model.string.written} | said,
            **{f: json_values.plain(getattr(self, f)) for f in SAVED},
            "held_out_errors": self.held_out.as_json() if self.held_out else None,
            "rows": [json_values.plain(row.values(ROW)) for row in self.rows],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the calibration as JSON; see `perfmodel.basics.files.replacing`.

        Raises:
            CalibrationError: if the file cannot be written.
        """
        FILE.save(path, self.as_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str], features: Mapping[str, Feature] | None = None) -> Calibration:
        """Reads a calibration from a file that `save` wrote.

        Args:
            features: the model's own features, as given to `Model`; they are code and therefore not in the file.

        Raises:
            CalibrationError: if the file is missing, damaged, or of a newer version, or needs features that are not
                given.
        """
        return cls._of(FILE.load(Path(path)), path, features)

    @classmethod
    def _of(
        cls, content: dict[str, Any], path: str | os.PathLike[str], features: Mapping[str, Feature] | None = None
    ) -> Calibration:
        try:
            loaded = cls(
                model=_model(content["model"], features),
                rows=tuple(map(checked_row, listed(content["rows"]))),
                **checked_fields(content),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise FILE.damaged(path, error) from error
        except (ModelStringError, FeatureError) as error:
            reason = error.reason if isinstance(error, ModelStringError) else error
            raise CalibrationError(
                f"the model of calibration {path} cannot be read, where a feature of your own is given by "
                f"features={{…}} or its file (--load FILE): {reason}"
            ) from error
        if tuple(loaded.parameters) != loaded.model.parameters:
            raise CalibrationError(
                f"calibration {path} is damaged: its model has the parameters {', '.join(loaded.model.parameters)}, "
                f"its values are of {', '.join(loaded.parameters)}; calibrate again or restore the file"
            )
        if not (below := loaded.below_zero):
            return loaded
        if "nonnegative" not in content:  # files of an earlier perfmodel do not say what its fit was told
            return replace(loaded, nonnegative=False)
        raise FILE.damaged(path, ValueError(f"{below[0]} is {loaded.parameters[below[0]]:g}, less than nothing"))

    @classmethod
    def shipped(cls, model: str = "", device: str = "") -> Calibration:
        """Returns a calibration that comes with perfmodel.

        >>> Calibration.shipped(device="H200").predict(kernel, n=[1024, 2048])
        >>> Calibration.shipped("unified-plus", device="H200").predict(kernel, n=[1024, 2048])

        Args:
            model: name of a recipe's model (default: the one for kernels of any kind that the device has one of).
            device: part of the device's name or key, or its kind, such as ``"cpu"``. For one that comes along with its
                specification only, or that a file of ``perfmodel device new`` describes, the calibration of another is
                carried over (see `on`); and for this machine's processor, by the kind or by its own name or key, if
                that is another than was calibrated.

        Raises:
            CalibrationError: if there is none, or more than one.
            DeviceError: for a file that describes no device.
        """
        if not isinstance(device, str):
            raise CalibrationError(f"{device!r:.40} does not name a device; give part of its name or its key, as text")
        found, wanted = shipped_files(), device.lower()
        if not wanted:
            raise CalibrationError(
                f"a calibration is of one device; name it, as in {', '.join(path.stem for path in found) or 'gpu@h200'}"
            )
        chosen: list[tuple[dict[str, Any], Path]] = []
        for name in [model] if model else default_models():
            loaded = [(FILE.load(path), path) for path in found if path.stem.partition("@")[0] == name]
            chosen = [(content, path) for content, path in loaded if _is_of(content["device"], wanted)]
            if chosen:
                break
        if not chosen:
            from perfmodel.device.processor_here import facts_here_or_known  # keeps start-up quick

            if "," in device and all(map(facts_here_or_known, device.split(","))):
                raise CalibrationError(
                    f"{device!r} names {device.count(',') + 1} devices, and a calibration is of one; ask for each by "
                    "itself, or compare them by 'perfmodel project'"
                )
            facts = DeviceFacts.load(device) if device.endswith(".json") else facts_here_or_known(device)
            if facts and (carried_over := cls._carried_over(model, facts, found)):
                return carried_over
        if len(chosen) != 1:
            models = {path.stem.partition("@")[0] for path in found}
            hint = nearest(wanted, keys_of_known()) if not model or model in models else nearest(model, models)
            what = f"calibration of {model!r}" if model else "calibration"
            raise CalibrationError(
                f"{'more than one' if chosen else 'no'} {what} for {device!r} is shipped"
                f"{hint} (there are {', '.join(path.stem for path in found) or 'none'}); "
                f"calibrate yourself by 'perfmodel reproduce {model if model in models else default_models()[0]}'"
            )
        calibration = cls._of(*chosen[0])
        if wanted != "cpu":
            return calibration
        from perfmodel.modelling.transfer import carried_here  # keeps start-up quick

        return carried_here(calibration)

    @classmethod
    def _carried_over(cls, model: str, facts: DeviceFacts, files: Iterable[Path]) -> Calibration | None:
        """Returns the shipped calibration of a device of the same kind, carried over to another; None if none is."""
        for name in [model] if model else default_models():
            for path in files:
                content = FILE.load(path)
                if path.stem.partition("@")[0] == name and content["device"].get("kind") == facts.kind:
                    return cls._of(content, path).on(facts)
        return None

    def to_ship(self) -> Calibration:
        """Returns the calibration without the measurements that it was fitted to, which predictions don't need."""
        report = f"fitted to {len(self.rows) - len(self.left_out)} measurements, which are not in this file"
        return replace(self, rows=(), report=report)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Calibration):
            return NotImplemented
        if self.model != other.model or (self.held_out is None) != (other.held_out is None):
            return False
        own, others = (each.held_out.as_json() if each.held_out else None for each in (self, other))
        if self.model.declared != other.model.declared:
            return False
        return own == others and all(
            json_values.plain(getattr(self, f)) == json_values.plain(getattr(other, f)) for f in SAVED
        )

    def __hash__(self) -> int:
        return hash((self.model, tuple(self.parameters.items())))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plots measured against predicted times of the fit, on matplotlib axes, new ones if none are given.

        Raises:
            CalibrationError: the calibration is one that comes along, without its measurements.
        """
        if not any(row.predicted_s for row in self.rows):
            raise CalibrationError("this calibration has not kept its measurements; plot one that you calibrated")
        return notebook_plots.fitted(self.rows, ax)

    def __repr__(self) -> str:
        on = str(self.device.get("name") or "no device")
        fitted = [number_of(len(self.rows) - len(self.left_out), "kernel")] if self.rows else []
        return brief(self, f"{self.model.output_name} on {on}", number_of(len(self.parameters), "parameter"), *fitted)

    def __str__(self) -> str:
        name = self.device.get("name", "no device")
        lines = [f"{self.model.output_name} on {name}, {len(self.rows) - len(self.left_out)} kernels", ""]
        lines += self.parameter_lines()
        lines += [f"left out: {row}" for row in self.left_out]
        lines += [f"undetermined: {sentence}" for sentence in self.undetermined]
        return "\n".join([*lines, "", self.report])


SAVED = (
    *("parameters", "stderr", "covariance", "residual_std", "ranges", "device", "protocol", "report", "undetermined"),
    *("marks", "versions", "created", "nonnegative"),
)


def calibration_called(name: str) -> Calibration:
    """Loads a calibration by its file, or by ``MODEL@DEVICE`` for one that comes with perfmodel; ``@DEVICE`` for the
    model that is the default there.

    Raises:
        CalibrationError: if there is none, or more than one.
    """
    model, at, device = name.partition("@")
    if Path(name).exists() or (name.endswith(".json") and not at):
        return Calibration.load(name)
    if at and not model:
        return Calibration.shipped(device=device)
    try:
        return Calibration.shipped(model, device)
    except CalibrationError as error:
        shipped = [path.stem for path in shipped_files()]
        within = [each for each in shipped if name.lower() in each]
        hint = f"; did you mean {' or '.join(map(repr, within[:2]))}?" if within else nearest(name, shipped)
        known = f"give a file that calibrate wrote, or one of {', '.join(shipped)}"
        raise CalibrationError(
            f"{name!r} names no calibration{f'{hint} ({known})' if hint else f'; {known}'}"
        ) from error


def _is_of(device: Mapping[str, Any], wanted: str) -> bool:
    """Returns whether words in lower case name this device: part of its name or key, or its kind."""
    return wanted in device["name"].lower() or wanted in device["key"] or wanted == device["kind"]


def _model(content: dict[str, Any], features: Mapping[str, Feature] | None) -> Model:
    try:
        said = {name: Meaning(**each) for name, each in content.get("meanings", {}).items()}
        given = content.get("parameters")
        return Model(content["output"], content["expression"], features, parameters=given, meanings=said)
    except FitError as error:
        raise ValueError(str(error)) from error
