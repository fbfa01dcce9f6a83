"""An API process, which speaks HTTP: one folder per resource."""
