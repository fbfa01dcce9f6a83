"""The functions of a SavedModel on NumPy arrays, for answers without TensorFlow."""
