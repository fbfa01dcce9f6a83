"""`tfbbb` whose `serve` has stand-in workers; takes the same arguments."""

from service.parent import processes
from tfbbb.__main__ import main

if __name__ == "__main__":
    processes._TRAINING = ("tests.service.job_process.stand_in_worker",)
    main()
