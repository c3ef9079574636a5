"""Keeps every measurement ever taken, in one SQLite file that several processes may write at once."""

from perfmodel.measuring.store.evaluations import StoredEvaluation
from perfmodel.measuring.store.exchange import export, import_file, merge, to_frame
from perfmodel.measuring.store.looking import looked_into
from perfmodel.measuring.store.rows import Failure, Measurement, measurement_key
from perfmodel.measuring.store.store import Counts, Group, Store, StoreWarning

__all__ = [
    "Counts",
    "Failure",
    "Group",
    "Measurement",
    "Store",
    "StoreWarning",
    "StoredEvaluation",
    "export",
    "import_file",
    "looked_into",
    "measurement_key",
    "merge",
    "to_frame",
]
