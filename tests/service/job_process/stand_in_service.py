"""The service with stand-in trainers: `... stand_in_service --port PORT`."""

import sys

import uvicorn

import service.api.child_processes
from service.app import create_app

if __name__ == "__main__":
    service.api.child_processes._DISPATCHER = (
        "tests.service.job_process.stand_in_dispatcher"
    )
    uvicorn.run(create_app(), port=int(sys.argv[-1]), log_level="warning")
