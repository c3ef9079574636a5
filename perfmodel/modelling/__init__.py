"""Models: fitted, and used to predict, explain, rank, evaluate and suggest."""
