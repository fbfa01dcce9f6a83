"""Every family by name: its arguments and properties, without TensorFlow.

The specs of jobs and the classes that compute with tensors inherit these families.
"""
