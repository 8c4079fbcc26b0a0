"""Exact values: every reachable state, its value, and what follows from them."""
