"""`tfbbb` whose `serve` has stand-in models and workers; takes the same arguments."""

from service.parent import processes
from tfbbb.__main__ import main

if __name__ == "__main__":
    processes._API = "tests.service.stand_in_api"
    processes._TRAINING = ("tests.service.job_process.stand_in_worker",)
    main()
