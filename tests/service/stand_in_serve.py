"""`tfbbb` whose `serve` starts stand-in model processes; takes the same arguments."""

import service.api.child_processes
from tests.service.serving import STAND_IN
from tfbbb.__main__ import main

if __name__ == "__main__":
    service.api.child_processes._MODELS = STAND_IN
    main()
