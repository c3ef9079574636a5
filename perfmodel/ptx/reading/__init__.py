"""Reads PTX text: tokens, declarations, instructions; what is not known is refused by name and line."""

from __future__ import annotations
