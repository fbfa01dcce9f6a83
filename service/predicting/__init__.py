"""The models of an API process: loads them, and computes predictions."""
