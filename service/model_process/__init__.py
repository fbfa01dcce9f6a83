"""The process that loads the models and computes their predictions."""
