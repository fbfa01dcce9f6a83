"""The REST service.

- `parent` starts the processes of the service, and restarts and stops them.
- `api` is a process that answers: it speaks HTTP.
- `predicting` is the models of such a process: loads them, computes predictions.
- `job_process` runs training jobs: `tfbbb worker`.
- `sandbox` does one task on an uploaded file, for the API, under limits.
- `shared` is what several of these use. Processes import `shared`, but never each
  other: they communicate through the database, files, and the messages in `shared`.
"""

import sys

if sys.platform == "win32":
    raise ImportError(
        "The service runs on Linux, as it needs the file locks of POSIX: use the image "
        "in a container, or the Windows Subsystem for Linux. "
        f"Received: sys.platform={sys.platform!r}",
        name=__name__,
    )
