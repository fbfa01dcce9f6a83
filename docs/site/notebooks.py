"""A chapter of the course as a notebook and as a program, beside its page."""

import base64
import json
import re
from pathlib import Path
from typing import Any

from docs.site.links import with_site_links
from tests.documents import PAGES, blocks

_INSTALL = "pip install tfbbb"
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PICTURE = re.compile(r"^!\[[^]]*\]\((\w+\.png)\)\n*", re.MULTILINE)
_FOLD, _UNFOLD = "<details><summary>Solution</summary>", "</details>"


def script(page: str) -> str:
    """Returns the programs of a page as one, with a cell for each."""
    programs = "\n".join(f"# %%\n{block}" for block in blocks(page, "python"))
    return f"# {_INSTALL}\n\n{programs}"


def notebook(page: str, text: str, pictures: Path) -> dict[str, Any]:
    """Returns a page with the outputs of its programs in the format of Jupyter.

    Pictures are outputs of the cells that draw them. A solution is folded as on the
    page, and its programs are cells whose source is hidden.
    """
    first, rest = text.split("\n", 1)
    cells = [_cell("markdown", first), _cell("code", f"%{_INSTALL}")]
    shown, prose, end = {*_PICTURE.findall(text)}, "", 0
    for found in [*_FENCED.finditer(rest), None]:
        prose += rest[end : found.start() if found else None]
        end = found.end() if found else end
        language, block = (found[1], found[2]) if found else ("python", "")
        if language == "math":
            prose += f"$$\n{block}$$"
        elif language == "output":
            cells[-1]["outputs"].insert(0, _printed(block))
        elif language != "python":
            prose += found[0]
        else:
            folded = prose.rfind("<details") > prose.rfind(_UNFOLD)
            if cleaned := _for_jupyter(page, prose + f"\n\n{_UNFOLD}" * folded):
                cells.append(_cell("markdown", cleaned))
            prose = f"{_FOLD}\n\n" * folded
            if block:
                cells.append(_cell("code", block.rstrip()))
                drawn = [name for name in sorted(shown) if f'"{name}"' in block]
                cells[-1]["outputs"] = [_picture(pictures / name) for name in drawn]
                cells[-1]["metadata"] = (
                    {"jupyter": {"source_hidden": True}} if folded else {}
                )
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def write_notebook(page: str, text: str, to: Path) -> str:
    """Writes notebook and program beside a page of the site; returns links to them."""
    to.with_suffix(".py").write_text(script(page))
    content = notebook(page, text, PAGES[page].parent)
    to.with_suffix(".ipynb").write_text(json.dumps(content, ensure_ascii=False))
    return f"[Notebook]({to.stem}.ipynb), [program]({to.stem}.py)."


def _cell(kind: str, source: str) -> dict[str, Any]:
    of_code = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source, **of_code}


def _printed(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def _picture(path: Path) -> dict[str, Any]:
    data = {"image/png": base64.b64encode(path.read_bytes()).decode()}
    return {"output_type": "display_data", "metadata": {}, "data": data}


def _for_jupyter(page: str, prose: str) -> str:
    prose = re.sub(r"\$`(.*?)`\$", r"$\1$", _PICTURE.sub("", prose), flags=re.DOTALL)
    prose = with_site_links(page, prose, _link).strip()
    return re.sub(rf"{_FOLD}\s*{_UNFOLD}", "", prose).strip()


def _link(page: str, target: str) -> str | None:
    """Returns a link as the notebook has it: to other chapters and to the web."""
    if re.match(r"\d\d_\w+\.md", target):
        return target.partition("#")[0].replace(".md", ".ipynb")
    return target if ":" in target else None
