"""The process that trains: `python -m service.trainer JOB_ID`.

Started by hand it takes the job from the queue and runs it. A dispatcher starts it with
`--attempt N --stay`: it then runs the attempt that was leased for it, writes `ready`
to its output, and runs what is named in each line `JOB_ID ATTEMPT` of its input. It
leaves, its job saved and back in the queue, at the end of its input or at SIGTERM.
"""

import logging
import os
import sys

from service.job_process.trainer import main

if __name__ == "__main__":
    from service.job_process.table_trainer import TableTrainer

    code = main(TableTrainer)
    logging.shutdown()
    sys.stdout.flush()
    # All is written; TensorFlow takes up to half a minute to take itself apart.
    os._exit(code)
