"""The parts of a report, in a browser."""

import re
import subprocess

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.service.serving import ADMIN_KEY
from tests.service.web.conftest import MODEL, answered, visit
from tests.service.web.looking import JARGON
from tests.service.web.tables import SCRIPT

FIGURES = {
    "regression": {"rmse": 54.1, "coverage_90": 0.91, "log_likelihood": -5.4},
    "classification": {"accuracy": 0.9, "auc": 0.97, "log_likelihood": -0.3},
}


def report_of(task):
    """A report with all parts, whose texts are markup."""
    classes = ["setosa", SCRIPT] if task == "classification" else []
    figures = {"model": FIGURES[task], "mean": FIGURES[task]}
    judgement = {"figures": figures, "sentences": ["Good."], "warnings": ["Few rows."]}
    band = {"lower": [0.0, 0.3], "upper": [0.5, 0.9]}
    rows = {"rows": 2, "row": [1, 2]}
    two = [[0.9, 0.1], [0.2, 0.8]] if classes else [120.0, 124.0]
    if classes:
        measured = {"confidence": [0.4, 0.6], "accuracy": [0.5, 0.5]}
        held_out = {"target": ["setosa", SCRIPT], "probabilities": two}
    else:
        measured = {"levels": [0.5, 0.9], "coverage": [0.4, 0.9]}
        bounds = {"level": 0.9, "lower": [92.4, None], "upper": [301.5, None]}
        held_out = {"target": [151.0, 75.0], "mean": two, "intervals": [bounds]}
    importance = {
        **{"name": SCRIPT, "nats": 0.2, "nats_standard_error": 0.02},
        **{"error": 9.1, "error_standard_error": 0.9},
        **{"mean_change": 30.2, "width_change": 4.1},
    }
    effect = {"mean": two, "lower": two, "upper": two, "range": 1.0}
    return {
        **{"task": task, "target": SCRIPT, "classes": classes},
        **{"metrics_from": "2 rows", "judgement": judgement, "remarks": ["Odd rows."]},
        "calibration": {"rows": 2, **measured, **band},
        "held_out": {**rows, **held_out},
        "importance": {"rows": 2, "columns": [importance], "left_out": []},
        "variance_split": {
            **rows,
            **{"measure": "entropy" if classes else "variance"},
            **{"mean_epistemic_share": 0.1, "epistemic": [0.1, 0.2]},
            "aleatoric": [0.9, 0.7],
        },
        "diagnosis": {
            "figures": [
                {"name": "KL divergence per row", "figure": "2", "sentence": SCRIPT},
                {"name": SCRIPT, "figure": "1", "sentence": "9 per row, in nats."},
            ],
            "findings": [
                {"name": "x", "sentence": "It costs 2 nats per row.", "advice": SCRIPT}
            ],
        },
        "effects": [
            {"name": "bmi", "kind": "number", "values": [18.5, 19.9], **effect},
            {"name": "kind", "kind": "text", "values": ["a", SCRIPT], **effect},
        ],
        "tried": {"chosen": {"network": "linear"}, "networks": [], "likelihoods": []},
    }


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_report_shows_all_its_parts(page, site, trained, task):
    answered(page, "**/report", json=report_of(task))
    visit(page, site, f"models/{MODEL}/1")
    truth = (
        "Predicted and true classes"
        if task[0] == "c"
        else "Intervals against the truth"
    )
    for heading in (
        *("How good it is", "Do its probabilities come true?", truth),
        *("Which columns matter", "What it does not know", "What was tried"),
        *("What each column does", "What the network learned"),
    ):
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    for warning in ("Few rows.", "Odd rows.", "It costs 2 in log likelihood"):
        expect(page.locator(".warns", has_text=warning).first).to_be_visible()
    expect(page.locator("canvas").first).to_be_visible()
    text = page.locator("#main").inner_text()
    assert not JARGON.findall(text)
    assert "variance" not in text
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_a_report_of_several_targets_has_a_part_for_each(page, site, trained):
    report, names = report_of("regression"), ("width", "height")
    of_target = ("calibration", "held_out", "importance", "variance_split", "effects")
    part = {name: report.pop(name) for name in of_target}
    del report["target"]
    report["targets"] = [{"target": name, **part} for name in names]
    alone = [{"name": name, **report["judgement"]} for name in names]
    report["judgement"] = {**report["judgement"], "targets": alone}
    answered(page, "**/report", json=report)
    visit(page, site, f"models/{MODEL}/1")
    for heading in ("Width", "Height"):
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    matter = page.get_by_role("heading", name="Which columns matter", exact=True)
    expect(matter).to_have_count(2)


def test_the_address_of_a_question_is_a_link_to_its_values(page, site, trained):
    visit(page, site, f"models/{MODEL}/1/ask?area=123")
    area = page.get_by_label("area", exact=True)
    expect(area).to_have_value("123")
    area.fill("77")
    expect(page).to_have_url(re.compile(r"/ask\?area=77$"))
    page.get_by_role("button", name="Back to the start").click()
    expect(page).to_have_url(re.compile(r"/ask$"))
    expect(page.get_by_label("area", exact=True)).not_to_have_value("77")


def test_the_programs_of_the_page_ask_what_it_asks(page, site, trained, capsys):
    visit(page, site, f"models/{MODEL}/1/ask?area=123")
    page.get_by_text("Use this model in a program").click()
    shown = page.get_by_label("The program", exact=True)
    mean = re.compile(r"mean.*?(\d+\.\d+)", re.DOTALL)
    answers = set()
    for choice in ("curl", "python", "client"):
        page.get_by_label("Program", exact=True).select_option(choice)
        expect(shown).to_contain_text("123")
        text = shown.inner_text().replace("prefix.secret", ADMIN_KEY)
        if choice == "curl":
            found = subprocess.run(["bash", "-c", text], capture_output=True, text=True)
            printed = found.stdout
        else:
            exec(text, {})
            printed = capsys.readouterr().out
        match = mean.search(printed)
        assert match is not None, printed
        answers.add(round(float(match[1]), 2))
    assert len(answers) == 1


def test_a_model_and_its_report_are_files(page, site, trained):
    visit(page, site, f"models/{MODEL}/1")
    for link, name in (
        ("Report as a file", f"{MODEL}-1-report.json"),
        ("Download the model", f"{MODEL}-1.zip"),
    ):
        with page.expect_download() as saved:
            page.get_by_role("link", name=link).click()
        assert saved.value.suggested_filename == name
        content = saved.value.path().read_bytes()
        assert content.startswith(b"{" if name.endswith("json") else b"PK")
