"""The documentation site: its links, its check of what pages load, and its build."""

import ast
import re
import subprocess
import sys

import pytest
from markdown_it import MarkdownIt

from docs.site.build import add_frames, check_self_contained
from docs.site.links import site_link, with_site_links
from docs.site.mathml import equation
from docs.site.notebooks import notebook, script
from docs.site.programs import for_site
from tests.documents import COURSE, PAGES, ROOT, blocks, without_outputs


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


@pytest.mark.parametrize("page", COURSE)
def test_notebook_and_script_are_the_programs_of_the_page(page):
    programs = "\n".join(blocks(page, "python"))
    assert ast.dump(ast.parse(script(page))) == ast.dump(ast.parse(programs))
    assert script(page).startswith("# pip install tfbbb\n")
    cells = notebook(page, PAGES[page].read_text(), PAGES[page].parent)["cells"]
    install, *code = [c["source"] for c in cells if c["cell_type"] == "code"]
    assert install == "%pip install tfbbb"
    assert "\n".join(f"{source}\n" for source in code) == programs
    for cell in cells:
        assert cell["source"].count("<details>") == cell["source"].count("</details>")
        assert "```math" not in cell["source"]
        assert "$`" not in cell["source"]


PAGE_WITH_OUTPUT = """# Title

See [steps](13_steps.md#two) and [layers](../keras.md).

```python
print(1)
```

```output
1
```

<details><summary>Solution</summary>

```python
2
```

So $`w`$.

</details>
"""


def test_notebooks_have_outputs_and_folded_solutions():
    _, _, text, code, solution, end = notebook("", PAGE_WITH_OUTPUT, ROOT)["cells"]
    assert text["source"] == "See [steps](13_steps.ipynb) and layers."
    assert code["outputs"][0]["text"] == "1\n"
    assert solution["metadata"]["jupyter"]["source_hidden"]
    fold = "<details><summary>Solution</summary>"
    assert end["source"] == f"{fold}\n\n\n\nSo $w$.\n\n</details>"


def test_outputs_have_a_style_of_their_own_on_the_site():
    page = for_site("docs/course/01_why_a_distribution.md", PAGE_WITH_OUTPUT)
    assert "```{code-block} text\n:class: output\n\n1\n```" in page
    assert "```output" not in page + without_outputs(PAGE_WITH_OUTPUT)


@pytest.mark.parametrize("page", COURSE)
def test_pages_of_the_course_record_what_their_programs_print(page):
    """At the level of a program; `tests.page_pictures` records the outputs."""
    text = PAGES[page].read_text()
    for program in blocks(page, "python"):
        _, after = text.split(f"```python\n{program}```", 1)
        recorded = after.startswith("\n\n```output\n")
        assert recorded == bool(re.search(r"^ *print\(", program, re.MULTILINE))
    assert not re.search(r"np\.\w+\(|\.\d{7}", "".join(blocks(page, "output")))


def test_pictures_with_frames_name_their_values(tmp_path):
    html, source = tmp_path / "html", tmp_path / "source"
    (html / "_images").mkdir(parents=True)
    source.mkdir()
    for value in ("10", "-1", "0.5"):
        (source / f"03_width={value}.png").write_bytes(b"frame")
    (html / "a.html").write_text('<img alt="a" src="_images/03_width.png" />')
    add_frames(html, source)
    image = '<img alt="a" src="_images/03_width.png" data-values="-1 0.5 10" />'
    assert (html / "a.html").read_text() == image
    assert (html / "_images" / "03_width=-1.png").read_bytes() == b"frame"


@pytest.mark.slow
def test_sphinx_accepts_every_page_and_docstring(tmp_path):
    """The programs of the pages are left out: they have tests of their own."""
    command = [sys.executable, "-m", "docs.site.build", "--output", str(tmp_path / "a")]
    subprocess.run([*command, "--without-programs"], cwd=ROOT, check=True)
    assert (tmp_path / "a" / "searchindex.js").is_file()
