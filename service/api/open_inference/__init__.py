"""Predictions, with the paths and bodies of the Open Inference Protocol (v2)."""
