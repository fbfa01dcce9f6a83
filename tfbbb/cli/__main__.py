"""Entry point of `python -m tfbbb.cli`."""

from tfbbb.cli import main

main()
