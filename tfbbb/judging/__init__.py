"""Whether a model of a table is worth using: baselines, explanations, drift."""
