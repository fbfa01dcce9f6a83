"""The service below a path of a site."""

import os
import subprocess
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from service.shared.settings import Settings, SettingsError
from tests.deployment.programs import program
from tests.ports import accepts, free_port
from tests.service.serving import ADMIN_KEY, serving, visiting
from tests.waiting import wait_until
from tfbbb.client import Client

_CADDY = {
    "strips": "handle_path /tfbbb/* {{\nreverse_proxy 127.0.0.1:{port} {{\n"
    "header_up X-Forwarded-Prefix /tfbbb\n}}\n}}",
    "keeps": "handle /tfbbb/* {{\nreverse_proxy 127.0.0.1:{port} {{\n"
    "header_up X-Forwarded-Prefix /tfbbb\n}}\n}}",
}
_NGINX = {
    "strips": "location /tfbbb/ {{ proxy_pass http://127.0.0.1:{port}/; {headers} }}",
    "keeps": "location /tfbbb/ {{ proxy_pass http://127.0.0.1:{port}; {headers} }}",
}
_HEADERS = (
    "proxy_set_header Host $http_host; proxy_set_header X-Forwarded-Prefix /tfbbb;"
)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    # Not the folder of the clone, which may have models.
    models = tmp_path_factory.mktemp("models")
    with serving(Settings(models=models)) as client:
        yield client


@contextmanager
def proxy(name, rule, folder, port):
    """Runs a proxy before a port; yields the address of the site."""
    here = free_port()
    if name == "caddy":
        binary = program("caddy", "`apt-get install caddy` installs it")
        rules = _CADDY[rule].format(port=port)
        text = "{\nadmin off\nauto_https off\n}\nhttp://127.0.0.1:%d {\n%s\n}\n"
        command = [binary, "run", "--adapter", "caddyfile", "--config"]
    else:
        binary = program("nginx", "`apt-get install nginx-light` installs it")
        rules = _NGINX[rule].format(port=port, headers=_HEADERS)
        text = "daemon off; pid nginx.pid; error_log stderr; events {} http {"
        text += "access_log off; server { listen 127.0.0.1:%d; %s } }"
        command = [binary, "-p", str(folder), "-c"]
    file = folder / "rules"
    file.write_text(text % (here, rules))
    environment = os.environ | {
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }
    with ExitStack() as stack:
        log = stack.enter_context((folder / "log").open("wb"))
        process = subprocess.Popen(
            [*command, str(file)], env=environment, stdout=log, stderr=log
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        wait_until(lambda: accepts(here))
        yield f"http://127.0.0.1:{here}/tfbbb"


@pytest.mark.parametrize("rule", ["strips", "keeps"])
@pytest.mark.parametrize("name", ["caddy", "nginx"])
def test_everything_stays_below_the_path_of_a_proxy(service, tmp_path, name, rule):
    port = service.base_url.port
    with (
        proxy(name, rule, tmp_path, port) as site,
        httpx.Client(base_url=site, follow_redirects=True, timeout=60) as browser,
    ):
        page = browser.get("/")
        assert 'src="web/' in page.text
        assert browser.get("/openapi.json").json()["servers"] == [{"url": "/tfbbb"}]
        assert browser.get("/guide").url.path == "/tfbbb/guide/index.html"

        assert browser.get("/v1/jobs").status_code == 401
        signed_in = browser.post("/v1/session", json={"key": ADMIN_KEY})
        assert "path=/tfbbb/;" in signed_in.headers["set-cookie"].lower()
        assert browser.get("/v1/jobs").status_code == 200
        assert 'src="docs/' in browser.get("/docs").text
        assert browser.delete("/v1/session").status_code == 204
        assert not list(browser.cookies.jar)
        with Client(site, ADMIN_KEY) as program_of_user:
            assert program_of_user.models() == []


def test_two_services_of_one_host_have_two_sessions():
    first, second = Settings(root_path="/one"), Settings(root_path="/two")
    with serving(first) as one, serving(second) as two, visiting(one) as browser:
        # As if both had one host and port: a jar of cookies looks at the paths alone.
        for client, path in ((one, "/one"), (two, "/two")):
            url = str(client.base_url).rstrip("/") + path
            browser.post(f"{url}/v1/session", json={"key": ADMIN_KEY})
            assert browser.get(f"{url}/v1/session").status_code == 200
        (found, other) = browser.cookies.jar
        assert {found.path, other.path} == {"/one/", "/two/"}
        assert found.name != other.name


def test_the_prefix_alone_leads_to_the_page():
    with serving(Settings(root_path="/tfbbb")) as client:
        found = client.get("/tfbbb?key=a.b")
        assert (found.status_code, found.headers["location"]) == (
            307,
            "/tfbbb/?key=a.b",
        )
        # The proxy may strip it, and programs on this machine may not know it.
        assert client.get("/v1/jobs").status_code == 200
        assert client.get("/tfbbb/v1/jobs").status_code == 200
        assert client.get("/tfbbbb/v1/jobs").status_code == 404


@pytest.mark.parametrize(
    "given", ["tfbbb", "/a//b", "//evil.example", "/a b", "/;Path=/", "/%2e%2e"]
)
def test_what_is_no_path_is_no_prefix(service, given):
    headers = {"X-Forwarded-Prefix": given}
    assert "servers" not in service.get("/openapi.json", headers=headers).json()
    with pytest.raises(SettingsError, match="TFBBB_ROOT_PATH"):
        Settings.from_environment({"TFBBB_ROOT_PATH": given})


def test_the_prefixes_of_several_proxies_are_joined(service):
    headers = {"X-Forwarded-Prefix": "/site/, /tfbbb"}
    document = service.get("/openapi.json", headers=headers).json()
    assert document["servers"] == [{"url": "/site/tfbbb"}]
