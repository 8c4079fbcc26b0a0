"""Solving, evaluation and self-play on a Ray cluster, as tasks and actors."""
