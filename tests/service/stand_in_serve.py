"""`tfbbb` whose `serve` knows the models of `stand_in`; takes the same arguments."""

from service.parent import processes
from tfbbb.__main__ import main

if __name__ == "__main__":
    processes._API = "tests.service.stand_in_api"
    main()
