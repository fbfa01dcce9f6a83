"""A Python client of the training service, over HTTP and without TensorFlow."""

from tfbbb.client.client import Client
from tfbbb.client.dataset import Dataset
from tfbbb.client.errors import (
    ClientError,
    JobFailedError,
    ServiceError,
    UnreachableError,
)
from tfbbb.client.event_stream import Event
from tfbbb.client.job import Job
from tfbbb.client.model import Model
from tfbbb.client.prediction import Prediction

__all__ = [
    "Client",
    "ClientError",
    "Dataset",
    "Event",
    "Job",
    "JobFailedError",
    "Model",
    "Prediction",
    "ServiceError",
    "UnreachableError",
]
