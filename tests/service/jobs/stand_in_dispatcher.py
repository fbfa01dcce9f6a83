"""A dispatcher of stand-in trainers, otherwise the real one."""

import sys

from service.jobs.dispatcher import main
from service.jobs.launcher import Launcher, LocalLauncher
from service.settings import Settings


def make_launcher(settings: Settings) -> Launcher:
    return LocalLauncher(settings, "tests.service.jobs.stand_in_trainer")


if __name__ == "__main__":
    sys.exit(main(make_launcher))
