"""Tells whether a device's times can be trusted, from times alone: no root, no vendor's tool needed.

Only what shows in the times themselves makes a device one not to be trusted. What explains times, such as other
programs on the machine, is at most doubtful: a device that others use can still give minima that agree.
"""

from perfmodel.measuring.doctor.diagnosis import Diagnosis, Finding, Promise, Quantity, Severity
from perfmodel.measuring.doctor.examination import Witness, examine

__all__ = ["Diagnosis", "Finding", "Promise", "Quantity", "Severity", "Witness", "examine"]
