"""Plots and self-contained pages."""
