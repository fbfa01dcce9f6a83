"""The process that speaks HTTP: one folder per resource."""
