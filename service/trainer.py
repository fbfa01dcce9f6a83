"""The process that trains: `python -m service.trainer JOB_ID`.

Started by hand, the process leases the job and runs it. A dispatcher starts the process
with `--attempt N --stay`: it runs the leased attempt, writes `ready` to its output, and
then runs the attempt of each line `JOB_ID ATTEMPT` of its input. At the end of its
input or at SIGTERM it saves its job, which returns to the queue, and ends.
"""

import logging
import os
import sys

from service.job_process.priority import give_way
from service.job_process.trainer import main

if __name__ == "__main__":
    give_way()
    from service.job_process.table_trainer import TableTrainer

    code = main(TableTrainer)
    logging.shutdown()
    sys.stdout.flush()
    # Exits at once: the clean-up of TensorFlow takes up to half a minute.
    os._exit(code)
