"""Metrics and plots of predictions."""
