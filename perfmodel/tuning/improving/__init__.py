"""Proposes changes of a kernel, predicts them, verifies them against the original, and measures the best few."""

from perfmodel.tuning.improving.improve_kernel import improve
from perfmodel.tuning.improving.improvements import Improvement, Improvements

__all__ = ["Improvement", "Improvements", "improve"]
