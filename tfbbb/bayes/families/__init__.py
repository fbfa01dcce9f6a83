"""What several kinds of families share: types of arguments, supports of targets.

It also declares the recalibrations, which specs read without TensorFlow.
"""
