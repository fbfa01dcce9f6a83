"""Caddy and HAProxy with the rules of `deploy/` in front of two replicas."""

import json
import os
import ssl
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.deployment.containers import ROOT, answers_without_key
from tests.deployment.programs import program
from tests.ports import accepts, free_port
from tests.waiting import wait_until

_PATIENCE = 30.0
_MAX_REQUESTS = 30


class Replica:
    """A process that stands for a replica.

    Args:
        name: The text of its answers.
    """

    def __init__(self, name):
        command = (sys.executable, Path(__file__).with_name("replica.py"), name)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.address = f"127.0.0.1:{int(self._process.stdout.readline())}"

    def send_last_event(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def kill(self):
        with self._process as process:
            process.kill()


@contextmanager
def two_replicas():
    replicas = [Replica("one"), Replica("two")]
    yield replicas
    for replica in replicas:
        replica.kill()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A self-signed certificate of 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    command += " -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -days 2"
    command += f" -keyout {key} -out {certificate}"
    subprocess.run(command.split(), check=True, capture_output=True)
    return certificate, key


@pytest.fixture(scope="module")
def site(tmp_path_factory, certificate):
    """A client of the proxies, and the replicas behind them."""
    folder = tmp_path_factory.mktemp("proxies")
    with two_replicas() as replicas, running(folder, certificate, replicas) as client:
        yield client, replicas


@contextmanager
def running(folder, certificate, replicas):
    """Runs the proxies until the block ends; yields a client of them."""
    caddy = program("caddy", "`apt-get install caddy` installs it")
    haproxy = program("haproxy", "`apt-get install haproxy` installs it")
    url, port = f"https://127.0.0.1:{free_port()}", free_port()
    balancer = f"127.0.0.1:{port}"
    environment = os.environ | {
        "SITE_ADDRESS": url,
        "TLS": " ".join(map(str, certificate)),
        "BALANCER": balancer,
        "LISTEN": balancer,
        "REPLICA_1": replicas[0].address,
        "REPLICA_2": replicas[1].address,
        "MAX_REQUESTS": str(_MAX_REQUESTS),
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }
    adapt = (caddy, "adapt", "--config", ROOT / "deploy" / "Caddyfile")
    adapted = subprocess.run(adapt, env=environment, capture_output=True, check=True)
    configuration = json.loads(adapted.stdout)
    # Port 80, from which clients are sent to TLS, may belong to somebody else here.
    for server in configuration["apps"]["http"]["servers"].values():
        server["automatic_https"] = {"disable_redirects": True}
    file = folder / "caddy.json"
    file.write_text(json.dumps(configuration))
    with ExitStack() as stack:
        log = stack.enter_context((folder / "log").open("wb"))
        for command in (
            (haproxy, "-f", ROOT / "deploy" / "haproxy.cfg"),
            (caddy, "run", "--config", file),
        ):
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        wait_until(lambda: accepts(port))
        context = ssl.create_default_context(cafile=str(certificate[0]))
        transport = httpx.HTTPTransport(verify=context, retries=10)
        client = httpx.Client(base_url=url, transport=transport, timeout=_PATIENCE)
        yield stack.enter_context(client)


def post(client, path, content=b"body"):
    """Posts a body; returns the answer, or the status of a refusal."""
    response = client.post(path, content=content)
    return response.text if response.is_success else str(response.status_code)


def test_proxy_asks_a_path_of_the_service_for_health():
    text = (ROOT / "deploy" / "haproxy.cfg").read_text()
    (path,) = (line.split()[3] for line in text.splitlines() if "httpchk" in line)
    assert answers_without_key(path)


def test_proxy_serves_tls_and_spreads_requests(site):
    client, replicas = site
    answer = client.get("/")
    assert answer.headers["X-Scheme"] == "https"
    assert {client.get("/").text for _ in range(20)} == {"one", "two"}
    # The proxies have no limit of their own: the service has one.
    assert client.post("/", content=bytes(40 * 2**20)).text == str(40 * 2**20)

    # An event arrives before the next one is sent.
    with client.stream("GET", "/events") as response:
        lines = response.iter_lines()
        assert next(lines) == "data: first"
        for replica in replicas:
            replica.send_last_event()
        assert "data: last" in list(lines)


def test_key_over_its_rate_is_refused_whichever_replica_it_asks(site):
    client, _ = site
    first, second = ({"Authorization": f"Bearer {n}"} for n in ("first", "second"))
    for _ in range(_MAX_REQUESTS):
        assert client.get("/", headers=first).status_code == 200
    refused = client.get("/", headers=first)
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "10"
    assert refused.json().keys() == {"error", "code", "field"}
    assert client.get("/", headers=second).status_code == 200
    # Health and sign-in need no key, and have no rate.
    for _ in range(_MAX_REQUESTS + 1):
        assert client.get("/").status_code == 200


def test_killed_replica_costs_no_request(site):
    # The last test of these replicas: it ends one.
    client, replicas = site
    replicas[0].kill()
    # No broken request has told the proxies that it is dead.
    assert {post(client, "/") for _ in range(20)} == {"4"}
    assert {client.get("/").text for _ in range(20)} == {"two"}


def test_broken_connection_costs_at_most_its_own_request(tmp_path, certificate):
    with (
        two_replicas() as replicas,
        running(tmp_path, certificate, replicas) as client,
    ):
        # Replica one hangs up on these; the other one predicts as well.
        assert {post(client, "/one:predict") for _ in range(20)} == {"4"}
        # More than the buffer of HAProxy holds cannot be repeated.
        large = {post(client, "/one:predict", bytes(20_000)) for _ in range(20)}
        assert large == {"20000", "502"}
        # Whether to start a job a second time is for the client to decide.
        assert {post(client, "/one") for _ in range(20)} == {"4", "502"}
        replicas[0].kill()
        assert {post(client, "/two") for _ in range(20)} == {"502"}
        assert {post(client, "/") for _ in range(20)} == {"4"}
