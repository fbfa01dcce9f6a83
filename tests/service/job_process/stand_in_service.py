"""The service with stand-in workers: `... stand_in_service --port PORT`."""

import argparse

import uvicorn

import service.api.child_processes
from service.app import create_app

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int)
    service.api.child_processes._TRAINING = (
        "tests.service.job_process.stand_in_worker",
    )
    uvicorn.run(create_app(), log_level="warning", **vars(parser.parse_args()))
