"""The processes that run jobs: a dispatcher, and the trainers that it starts."""
