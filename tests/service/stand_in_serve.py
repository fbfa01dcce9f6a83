"""`tfbbb` whose `serve` starts stand-in model processes; takes the same arguments."""

from service.api.shared_counters import shared_counters
from tfbbb.__main__ import main

if __name__ == "__main__":
    # The library of the metrics counts for several processes if it is imported here.
    with shared_counters():
        import service.api.child_processes

        service.api.child_processes._MODELS = "tests.service.stand_in"
        main()
