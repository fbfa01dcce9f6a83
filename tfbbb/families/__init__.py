"""Every family by name: its arguments and properties, without TensorFlow.

A job's spec and the classes that compute with tensors both inherit what stands here.
"""
