"""The documentation site: its links, its check of what pages load, and its build."""

import re
import subprocess
import sys

import pytest
from markdown_it import MarkdownIt

from docs.site.build import check_self_contained
from docs.site.links import site_link, with_site_links
from docs.site.mathml import equation
from tests.documents import COURSE, PAGES, ROOT


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("README.md", "docs/keras.md#layers", "keras.md#layers"),
        ("docs/keras.md", "../README.md", "index.md"),
        ("docs/which.md", "gallery/bandit.md", "gallery/bandit.md"),
        ("docs/gallery/bandit.md", "../keras.md", "../keras.md"),
        ("docs/which.md", "../benchmarks/README.md", "benchmarks/README.md"),
        ("docs/keras.md", "../tfbbb/layers", "api/tfbbb.layers.md"),
        ("docs/keras.md", "../tfbbb/bayes/priors", "api/tfbbb.priors.md"),
        ("docs/keras.md", "../tfbbb/lab/evidence", "api/tfbbb.lab.evidence.md"),
        ("README.md", "docs/intervals.png", "intervals.png"),
        ("docs/keras.md", "#layers", "#layers"),
    ],
)
def test_links_lead_to_pages_of_the_site(page, link, expected):
    assert site_link(page, link) == expected


def test_links_to_files_that_the_site_lacks_become_text():
    text = "See [the list](tests/mutations/mutations.toml) and `a[0](b)`."
    assert with_site_links("CONTRIBUTING.md", text) == "See the list and `a[0](b)`."


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("<script>alert(1)</script>", "an inline script"),
        ('<p style="color: red">', "an inline style"),
        ('<p onclick="alert(1)">', "an inline handler"),
        ('<img src="https://example.org/a.png">', "a file of another origin"),
        ('<script src="//example.org/a.js"></script>', "a file of another origin"),
    ],
)
def test_pages_that_load_more_than_the_site_are_refused(tmp_path, page, fault):
    (tmp_path / "index.html").write_text(page)
    (found,) = check_self_contained(tmp_path)
    assert found.startswith(f"index.html: {fault}")


def test_pages_of_own_files_and_outgoing_links_pass(tmp_path):
    (tmp_path / "index.html").write_text(
        '<script src="a.js"></script><a href="https://example.org">there</a>'
    )
    assert check_self_contained(tmp_path) == []


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        ("w", "<mi>w</mi>"),
        ("`w`", "<mi>w</mi>"),
        ("\\sigma^2", "<msup><mi>&#x003C3;</mi><mn>2</mn></msup>"),
        ("\\operatorname{Var}[y]", '<mi>Var</mi><mo stretchy="false">[</mo>'),
        ("N \\log y", "<mi>N</mi>_<mi>log</mi>_<mi>y</mi>"),
        ("\\lVert y", '<mo stretchy="false">&#x02016;</mo><mi>y</mi>'),
        ("\\log(y)", '<mi>log</mi><mo stretchy="false">&#x00028;</mo>'),
    ],
)
def test_equations_become_mathml(latex, expected):
    thin = '<mspace width="0.167em" />'
    assert expected.replace("_", thin) in equation(latex)
    assert 'display="inline"' in equation(latex)
    block = equation(latex, block=True)
    assert block.startswith('<div class="equation"><math')
    assert 'display="block"' in block


@pytest.mark.parametrize(
    "latex", ["\\unknown w", "\\begin{aligned} a &= b \\end{aligned}"]
)
def test_equations_with_unknown_commands_are_refused(latex):
    with pytest.raises(ValueError, match="does not know a command"):
        equation(latex)


@pytest.mark.parametrize("page", ["docs/course.md", *COURSE])
def test_markdown_leaves_equations_as_they_are(page):
    """As on GitHub, which reads `$...$` as text first; $`...`$ and ```math as code."""
    for block in MarkdownIt().enable("table").parse(PAGES[page].read_text()):
        texts = [child.content or "\n" for child in block.children or ()]
        for found in re.findall(r"\$\$?[^$`]+\$\$?", block.content):
            if block.type == "inline":
                assert found in "".join(texts), f"write {found} with backticks"


@pytest.mark.slow
def test_sphinx_accepts_every_page_and_docstring(tmp_path):
    """The programs of the pages are left out: they have tests of their own."""
    command = [sys.executable, "-m", "docs.site.build", "--output", str(tmp_path / "a")]
    subprocess.run([*command, "--without-programs"], cwd=ROOT, check=True)
    assert (tmp_path / "a" / "searchindex.js").is_file()
