"""The REST service, one folder per process.

- `api` speaks HTTP, and starts the model process and a dispatcher.
- `model_process` loads the models and computes predictions.
- `job_process` runs training jobs: a dispatcher starts trainers.
- `inspection_process` reads one uploaded table, for the API.
- `shared` is what several processes use. They import it, and never each other: they
  meet in the database, on the disk, and by the messages that are defined here.
"""
