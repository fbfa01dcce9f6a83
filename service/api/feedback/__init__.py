"""Feedback: what came true, and how the versions predicted it."""
