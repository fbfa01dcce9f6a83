"""Health: whether the service runs, and whether it is ready."""
