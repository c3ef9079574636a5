"""Fits models, and uses them to predict, explain, rank, evaluate and suggest."""
