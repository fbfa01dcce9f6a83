"""A training that takes its time, to be killed: python killed_training.py DIRECTORY."""

import sys
import time
from pathlib import Path

from tests.training import trainings

EPOCHS = 100


def main():
    directory = Path(sys.argv[1])
    trainings.train(
        trainings.model(members=2),
        epochs=EPOCHS,
        rows=trainings.stored_rows(directory / "rows"),
        checkpoint_directory=directory,
        checkpoint_seconds=0.01,
        should_stop=lambda: time.sleep(0.02),
    )


if __name__ == "__main__":
    main()
