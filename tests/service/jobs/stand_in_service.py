"""The service with stand-in trainers: `... stand_in_service --port PORT`."""

import sys

import uvicorn

import service.processes
from service.app import create_app

if __name__ == "__main__":
    service.processes._DISPATCHER = "tests.service.jobs.stand_in_dispatcher"
    uvicorn.run(create_app(), port=int(sys.argv[-1]), log_level="warning")
