"""Labels: names that point at versions of a model."""
