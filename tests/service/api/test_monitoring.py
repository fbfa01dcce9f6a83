"""The alerts and the board of `deploy/` ask for metrics that the service exports."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.deployment.programs import program
from tests.service.serving import ask

DEPLOY = Path(__file__).parents[3] / "deploy"
RULES = DEPLOY / "prometheus" / "tfbbb.rules.yml"
BOARD = json.loads((DEPLOY / "grafana" / "tfbbb.json").read_text())
# Prometheus itself makes these.
OF_PROMETHEUS = {"up"}
TARGET_LABELS = {"instance", "job"}

SELECTOR = re.compile(r"([a-z_]\w*)\s*\{([^}]*)\}")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
OPERATORS = {"and", "or", "unless"}


def rules():
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return group["rules"]


def panels():
    return [panel for panel in BOARD["panels"] if panel["type"] != "row"]


def expressions():
    """The expressions by what they are for."""
    alerts = {rule["alert"]: rule["expr"] for rule in rules()}
    shown = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in panels()
        for target in panel["targets"]
    }
    chosen = {
        f"variable {variable['name']}": variable["query"]
        .partition("(")[2]
        .split(",")[0]
        for variable in BOARD["templating"]["list"]
        if variable["type"] == "query"
    }
    return alerts | shown | chosen


def metrics_of(expression):
    """The metrics of an expression: its names that are no functions and no labels."""
    bare = re.sub(r'"[^"]*"', "", expression)
    for inner in (r"\{[^}]*\}", r"\[[^]]*\]", GROUPING.pattern):
        bare = re.sub(inner, " ", bare)
    names = re.findall(r"(?<![\w.$])([a-z_]\w*)(?!\w*\s*\()", bare)
    return set(names) - OPERATORS


@pytest.fixture(scope="module")
def exported(client):
    """The metrics by the names of their samples, also those without a sample yet."""
    assert ask(client, "diabetes", {"instances": [[1, 2, 3]]}).status_code == 200
    text = client.get("/metrics").text
    suffixes = {
        "counter": ("_total",),
        "histogram": ("_bucket", "_sum", "_count"),
        "summary": ("_sum", "_count"),
    }
    return {
        family.name + suffix: family
        for family in text_string_to_metric_families(text)
        for suffix in suffixes.get(family.type, ("",))
    }


def test_expressions_ask_for_exported_metrics(exported):
    for name, expression in expressions().items():
        found = metrics_of(expression)
        assert found, name
        assert found <= exported.keys() | OF_PROMETHEUS, name
        for metric, matchers in SELECTOR.findall(expression):
            labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
            samples = exported[metric].samples if metric in exported else ()
            for sample in [sample for sample in samples if sample.name == metric][:1]:
                assert labels <= sample.labels.keys() | TARGET_LABELS, name


def test_every_alert_says_what_it_means():
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) > 10
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"]["summary"]


def run_promtool(*arguments):
    promtool = program("promtool", "`apt-get install prometheus` installs it")
    run = subprocess.run(
        [promtool, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_alerts_fire_as_their_examples_say():
    run_promtool("check", "rules", RULES)
    run_promtool("test", "rules", RULES.with_name("tfbbb.test.yml"))


def test_expressions_of_the_board_parse(tmp_path):
    shown = [
        target["expr"].replace("$__rate_interval", "5m")
        for panel in panels()
        for target in panel["targets"]
    ]
    records = [
        {"record": f"panel:{number}", "expr": expr} for number, expr in enumerate(shown)
    ]
    file = tmp_path / "board.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": records}]}))
    run_promtool("check", "rules", file)
