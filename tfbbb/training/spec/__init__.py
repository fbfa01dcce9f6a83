"""The fields of a job as plain JSON values, validated without TensorFlow."""

from tfbbb.training.spec.families import SpecError
from tfbbb.training.spec.job import JobSpec, Version
from tfbbb.training.spec.model import ModelSpec
from tfbbb.training.spec.training import TrainingSpec

__all__ = ["JobSpec", "ModelSpec", "SpecError", "TrainingSpec", "Version"]
