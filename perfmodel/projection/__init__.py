"""Predicts by device profiles: their files, how one is measured, and which device to choose."""
