"""A dispatcher of stand-in trainers, otherwise the real one."""

import sys

from service.job_process.dispatcher import main
from service.job_process.launcher import Launcher, LocalLauncher
from service.shared.settings import Settings


def make_launcher(settings: Settings) -> Launcher:
    return LocalLauncher(settings, "tests.service.job_process.stand_in_trainer")


if __name__ == "__main__":
    sys.exit(main(make_launcher))
