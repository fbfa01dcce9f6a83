"""Figures of the service for Prometheus."""
