"""The sandbox with stand-in models: `python -m tests.service.stand_in_sandbox NAME`."""

import os

from service.sandbox.__main__ import main
from tests.service.stand_in import install

if __name__ == "__main__":
    install()
    main()
    os._exit(0)
