"""The model process, which loads models and computes predictions."""
