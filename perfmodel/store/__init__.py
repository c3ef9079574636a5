"""Keeps every measurement ever taken, in one SQLite file that several processes may write at once."""

from perfmodel.store.exchange import export, import_file, merge, to_frame
from perfmodel.store.kernel_tuner import import_kernel_tuner
from perfmodel.store.looking import looked_into
from perfmodel.store.rows import Failure, Measurement, measurement_key
from perfmodel.store.store import Counts, Group, Store, StoreWarning

__all__ = [
    "Counts",
    "Failure",
    "Group",
    "Measurement",
    "Store",
    "StoreWarning",
    "export",
    "import_file",
    "import_kernel_tuner",
    "looked_into",
    "measurement_key",
    "merge",
    "to_frame",
]
