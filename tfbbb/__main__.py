"""Entry point of `python -m tfbbb`."""

from tfbbb.cli import main

main()
