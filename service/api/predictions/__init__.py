"""Predictions, with the paths and bodies of TensorFlow Serving."""
