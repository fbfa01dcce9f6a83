"""The REST service, one folder per process.

- `api` speaks HTTP, and starts the model process and a dispatcher.
- `model_process` loads the models and computes predictions.
- `job_process` runs training jobs: a dispatcher starts trainers.
- `inspection_process` reads one uploaded table, for the API.
- `shared` is what several processes use. Processes import `shared`, but never each
  other: they communicate through the database, files, and the messages in `shared`.
"""
