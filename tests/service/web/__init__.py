"""A package, so that the fixtures of its scope end with its tests."""
