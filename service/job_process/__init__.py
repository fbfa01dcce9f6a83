"""The processes that run training jobs: a dispatcher, and trainers that it starts."""
