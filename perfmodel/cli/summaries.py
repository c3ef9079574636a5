"""Lists the commands by what people want, each with what it does: ``perfmodel --help`` needs nothing else."""

from __future__ import annotations

SUMMARIES: dict[str, dict[str, str]] = {
    "see what there is": {
        "devices": "list the devices, OpenCL's and CUDA's, and the drivers that failed",
        "device": "show the specification of a device that need not be here, or describe another",
        "doctor": "examine devices, and say whether their times can be trusted; the exit status is 1 if one's can't",
        "kernels": "list generators and tags, describe one, or list the kernels that tags select",
        "features": "list the families of features, or describe one",
        "store": "look into stores of measurements, take rows out of them and into them, check them",
        "browse": "look at a store in a browser: kernels, devices, residuals, live; read only, on this machine only",
    },
    "look into kernels": {
        "count": "show what kernels do: operations, accesses, footprints, barriers, symbolic and at sizes",
        "emulate": "run some work-groups of a kernel in numpy, and show what they do",
        "occupancy": "how many work-groups a GPU's multiprocessor holds at a time, and which resource decides",
        "verify": "run every variant of families of kernels on small sizes, and compare with their numpy references",
    },
    "measure and calibrate": {
        "measure": "measure kernels on devices, each in a process of its own, and keep every time in a store",
        "worker": "start a Dask worker that measures on this machine's devices, for campaigns with --scheduler",
        "calibrate": "measure kernels, and fit a model to them, or let the model of any kernel learn from them",
        "suggest": "measure kernels and search the features for a model of their times",
        "characterize": "measure what a device is capable of, for projections to it",
    },
    "predict": {
        "predict": "predict the time of kernels",
        "explain": "say where the predicted time of kernels goes",
        "rank": "order kernels by their predicted time",
        "improve": "propose changes of a kernel, predict them, compare their results, and measure the best",
        "tune": "search for a kernel's fastest configuration: predict all, measure the most promising, learn, and stop",
        "project": "rank devices for kernels: emulate one work-group, and project its time to each device's profile",
        "run": "run a Python script that uses pyopencl or CuPy, and say what its kernels and copies took",
    },
    "judge predictions": {
        "evaluate": "measure kernels that a calibration was not fitted to, and compare with what it predicts",
        "survey": "read, count, emulate, compare, predict and measure the kernels of a folder with a survey.json",
        "reproduce": "calibrate a recipe's models here, predict its evaluation kernels, and write its tables",
        "demo": "calibrate two models of matrix multiplication here and check them; short for: reproduce demo",
        "report": "write one HTML page of calibrations: times, errors, costs, parameters, a roofline, devices compared",
    },
    "on the command line": {
        "completion": "print what makes a shell complete commands, options and names",
    },
}


def summary_of(command: str) -> str:
    """Returns what a command does, in a few words."""
    return next(commands[command] for commands in SUMMARIES.values() if command in commands)
