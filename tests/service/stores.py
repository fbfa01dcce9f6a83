"""Stores for tests."""

import logging
import secrets
from contextlib import contextmanager

import pytest

from service.shared.settings import Settings
from service.shared.store import Store


def directory_store(models):
    """A store whose models are in a directory."""
    return Store(Settings(models=models))


class S3:
    """A server of S3 on this machine, which the environment names."""

    def __init__(self):
        s3fs = pytest.importorskip("s3fs")
        self.storage = s3fs.S3FileSystem(use_listings_cache=False)

    def new_store(self):
        """The URL of a store in a bucket of its own."""
        bucket = f"bucket-{secrets.token_hex(4)}"
        self.storage.mkdir(bucket)
        return f"s3://{bucket}/tests"

    def remove_bucket(self, url):
        bucket = url.removeprefix("s3://").partition("/")[0]
        self.storage.rm(bucket, recursive=True)


@contextmanager
def s3_server():
    """Runs a server until the block ends; this process and its children use it."""
    server_module = pytest.importorskip("moto.server")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = server_module.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    variables = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "tests",
        "AWS_DEFAULT_REGION": "us-east-1",
        # The server must answer at once: no test waits for repeated requests.
        "AWS_MAX_ATTEMPTS": "1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.delenv("AWS_PROFILE", raising=False)
        yield S3()
    server.stop()
