"""`tfbbb` whose `serve` starts stand-in model processes; takes the same arguments."""

import os

from service.api.shared_counters import VARIABLE
from tfbbb.__main__ import main

if __name__ == "__main__":
    # If the variable is there when the library of the metrics is imported, it counts
    # for several processes; `serve` says where.
    os.environ[VARIABLE] = ""
    import service.api.child_processes

    service.api.child_processes._MODELS = "tests.service.stand_in"
    main()
