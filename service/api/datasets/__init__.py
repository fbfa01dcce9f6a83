"""Datasets: uploaded tables."""
