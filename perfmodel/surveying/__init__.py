"""Kernels of other people are surveyed: read, counted, emulated, compared with a device, predicted and measured.

A survey is a folder of ``.cl`` and ``.cu`` files with a file ``survey.json`` that says how they are launched; see
docs/surveys.md.
"""

from perfmodel.surveying.case import Case
from perfmodel.surveying.cases import load_cases
from perfmodel.surveying.survey import Survey, survey

__all__ = ["Case", "Survey", "load_cases", "survey"]
