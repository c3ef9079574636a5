"""Devices by specification: their profiles, how one is measured, and which device to choose."""
