"""A report about a model as one HTML page, without other files.

The page has the JSON of the report, and the scripts of the page of the service, which
show the report of a version.
"""

import base64
import hashlib
import html
import importlib.util
import json
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tfbbb.base.texts import shown_number
from tfbbb.base.types import Config
from tfbbb.cli.explain import describe_outside, describe_unusual
from tfbbb.judging.evaluation.input_encoding import EncodedColumn, as_numbers
from tfbbb.tables.row_warnings import show_date

if TYPE_CHECKING:
    from tfbbb.cli.model_table import ModelTable
    from tfbbb.export.manifest import Feature
    from tfbbb.judging.evaluation import InputEncoding
    from tfbbb.judging.explain import Explanation
    from tfbbb.prediction import Predictive

_MOST_COLUMNS = 200
_MOST_CATEGORIES = 6
_START = "report_file.js"
_SCRIPTS = "vendor/uplot-1.6.32.js"
_STYLES = ("vendor/uplot-1.6.32.css", "style.css")
_IMPORT = re.compile(r'^import (\{.*\}) from "\./(.*)\.js";$', re.MULTILINE)
_EXPORT = re.compile(
    r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE
)
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main id="main"></main>
<noscript><p class="loading">This page shows its report by JavaScript.</p></noscript>
<script type="application/json" id="report">{report}</script>
<script>{script}</script>
</body>
</html>
"""


def report_of_table(
    given: "ModelTable",
    name: str,
    judgement: Config,
    explanation: "Explanation",
    prediction: "Predictive",
    targets: np.ndarray,
    encoding: "InputEncoding | None",
) -> Config:
    """Returns the report of a model by a table, in the form of a version's report."""
    # They import the formats of tables, and SciPy.
    from tfbbb.export.manifest import MANIFEST_PATH, REPORT_FILE
    from tfbbb.judging.report import (
        FORMAT,
        calibration,
        explanations,
        held_out,
        rounded,
    )

    manifest = given.manifest
    lineage = dict(manifest.lineage or {})
    recipe, trained = lineage.get("recipe"), lineage.get("judgement")
    classes = list(manifest.classes or ())
    rows = _count(given.table.num_rows, "row")
    source = f"{manifest.num_rows:.15g} rows" if manifest.num_rows else "a table"
    generator = np.random.default_rng(0)
    outside = describe_outside(explanation)
    features = manifest.features
    model = f"{given.path.absolute().parent.name}/{given.path.name}"
    what = "a class" if classes else "a number"
    inputs = _count(len(features), "column")
    report: Config = {
        "format": FORMAT,
        "title": f"Predicting {manifest.target or 'the target'}",
        "about": f"Model {model}, trained on {source} on {manifest.created[:10]}. It "
        f"predicts {what} from {inputs}. This report judges it by {rows} of {name}.",
        "written": f"Written on {datetime.now().astimezone():%Y-%m-%d %H:%M} by tfbbb "
        f"{manifest.libraries.get('tfbbb', '')}.",
        "task": "classification" if classes else "regression",
        "target": manifest.target,
        "classes": classes,
        "metrics_from": f"the {rows} of the table, beside baselines that were fitted "
        "to the training rows",
        "judgement": judgement,
        "remarks": [
            *given.remarks,
            *(f"In training: {text}" for text in (trained or {}).get("warnings", ())),
            *(f"In training: {text}" for text in (recipe or {}).get("remarks", ())),
            *([outside] if outside else ()),
        ],
        "calibration": calibration(prediction, targets, generator),
        "held_out": held_out(prediction, targets, explanation.rows, classes, generator),
        **explanations(
            explanation.split,
            explanation.rows,
            explanation.importance,
            explanation.effects,
            [feature.name for feature in features],
            given.table.num_rows,
        ),
        "unusual": {
            "by": explanation.unusual_by,
            "rows": [
                {
                    "row": unusual.row + 1,
                    "epistemic": unusual.epistemic,
                    "ratio": unusual.ratio,
                    "familiarity": unusual.familiarity,
                    "farthest": describe_unusual(unusual),
                }
                for unusual in explanation.unusual
            ],
        },
        "columns": _columns(features[:_MOST_COLUMNS], given.inputs, encoding),
    }
    stored = given.path / MANIFEST_PATH
    if (written := stored.with_name(REPORT_FILE)).exists():
        report["diagnosis"] = json.loads(written.read_bytes()).get("diagnosis")
    if trained and recipe:
        measured = recipe.get("metrics_from", _count(trained["rows"], "row"))
        report["trained"] = {"metrics_from": measured, "judgement": trained}
    if recipe:
        report["tried"] = {
            "chosen": recipe["chosen"],
            "networks": recipe["tried"],
            "likelihoods": recipe.get("likelihoods", []),
            "recalibration": manifest.recalibration_choice,
            "epochs": recipe["epochs"],
            "steps": recipe["steps"],
            "steps_on_more_rows": recipe.get("steps_on_more_rows"),
            "out_of_time": recipe["out_of_time"],
        }
    found: Config = rounded(report)
    return found


def report_html(report: Config) -> str:
    """Returns the page of a report; it loads nothing, and no text becomes a tag."""
    found = importlib.util.find_spec("service")
    assert found is not None, "`service` is in the wheel of tfbbb."
    assert found.submodule_search_locations is not None
    web = Path(found.submodule_search_locations[0]) / "web"
    style = "\n".join((web / name).read_text("utf-8") for name in _STYLES)
    modules: dict[str, str] = {}
    _add_module(web, _START.removesuffix(".js"), modules)
    script = "\n".join([(web / _SCRIPTS).read_text("utf-8"), *modules.values()])
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    )
    return _PAGE.format(
        policy=html.escape(policy),
        title=html.escape(report["title"]),
        style=style,
        # No text of the report ends the element.
        report=json.dumps(report, allow_nan=False).replace("<", "\\u003c"),
        script=script,
    )


def _add_module(web: Path, name: str, modules: dict[str, str]) -> None:
    """Adds a module after those that it imports, each as a function called once."""
    text = (web / f"{name}.js").read_text("utf-8")
    for imported in _IMPORT.findall(text):
        if imported[1] not in modules:
            _add_module(web, imported[1], modules)
    exported = ", ".join(found[1] for found in _EXPORT.findall(text))
    body = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = \2;", text))
    modules[name] = (
        f"const {name} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();"
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _columns(
    features: Sequence["Feature"],
    inputs: dict[str, np.ndarray],
    encoding: "InputEncoding | None",
) -> list[Config]:
    """Returns what the columns hold in training and in the table."""
    known = {} if encoding is None else {c.name: c for c in encoding.columns}
    described = []
    for feature in features:
        values = np.asarray(inputs[feature.name])
        number = values.dtype.kind in "fiub"
        missing = ~np.isfinite(as_numbers(values)) if number else values == ""
        described.append(
            {
                "name": feature.name,
                "kind": feature.kind,
                "trained": _trained_range(known.get(feature.name)),
                "here": _range(values[~missing], feature.kind),
                "missing": int(np.sum(missing)),
            }
        )
    return described


def _trained_range(column: EncodedColumn | None) -> str:
    if column is None:
        return "-"
    if column.categories is not None:
        return _categories(column.categories, column.complete)
    return f"{column.show(column.least)} to {column.show(column.greatest)}"


def _range(values: np.ndarray, kind: str) -> str:
    if not len(values):
        return "-"
    if kind == "date":
        return f"{show_date(values.min())} to {show_date(values.max())}"
    if kind == "numeric":
        return f"{shown_number(values.min(), 5)} to {shown_number(values.max(), 5)}"
    found, counts = np.unique(values.astype(str), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return _categories(tuple(found[order].tolist()), True)


def _categories(texts: Sequence[str], complete: bool) -> str:
    shown = ", ".join(text or "(missing)" for text in texts[:_MOST_CATEGORIES])
    more = len(texts) - _MOST_CATEGORIES
    if more <= 0:
        return shown
    others = "other" if more == 1 and complete else "others"
    return f"{shown} and {more}{'' if complete else ' or more'} {others}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
