"""What a person sees of a screen, in both themes, on a phone and enlarged."""

import re
from dataclasses import dataclass

from axe_playwright_python.sync_playwright import Axe

WIDE = {"width": 1200, "height": 900}
# A browser at 200 % has half the pixels of the window.
NARROW = {
    "phone": {"width": 390, "height": 844},
    "200 %": {"width": 600, "height": 450},
}
# Words of programs and of the trade, which no text of the page needs.
JARGON = re.compile(
    r"Received:|`|\bnats?\b|\bmembers?\b|\bgate\b|\bkl\b", re.IGNORECASE
)
_OPEN = "all => all.forEach((one) => { one.open = true; })"
_HIDE = "all => all.forEach((one) => { one.style.display = 'none'; })"
# The controls that are not at their own centre, scrolled to from above and from below.
_COVERED = """() => {
    const names = "a[href], button, input, select, textarea, summary, [tabindex='0']";
    const covered = [];
    for (const control of document.querySelectorAll(names)) {
        if (control.matches(".skip") || !control.checkVisibility()) continue;
        for (const start of [0, document.documentElement.scrollHeight]) {
            scrollTo(0, start);
            control.scrollIntoView({ block: "nearest", inline: "nearest" });
            const [box] = control.getClientRects();
            const x = (Math.max(0, box.left) + Math.min(innerWidth, box.right)) / 2;
            const y = (Math.max(0, box.top) + Math.min(innerHeight, box.bottom)) / 2;
            const hit = document.elementFromPoint(x, y);
            if (!control.contains(hit)) {
                covered.push(`${control.outerHTML.slice(0, 90)} by `
                    + `${hit?.outerHTML.slice(0, 90)}`);
            }
        }
    }
    return covered;
}"""
# The share of the height of the window that stays in place, at most.
_STUCK = """() => Math.max(0, ...[...document.querySelectorAll("body *")]
    .filter((one) => ["sticky", "fixed"].includes(getComputedStyle(one).position)
        && one.checkVisibility() && !one.matches(".skip"))
    .map((one) => one.getBoundingClientRect().height / innerHeight))"""


# The dark theme has other colours, and nothing else.
CHECKED = {
    "light": {"resultTypes": ["violations"]},
    "dark": {"runOnly": {"type": "rule", "values": ["color-contrast"]}},
}


@dataclass(frozen=True)
class Seen:
    """A screen, as people see it.

    Attributes:
        text: Its text.
        jargon: The jargon of its text with all sections open, without that of logs and
            of other preformatted texts.
        title: The title of the document.
        num_foreign: Number of images and scripts, of which it should have none.
        violations: What axe finds, by theme.
        widths: The width of the document with all sections open, by size.
        covered: The controls that something else covers, by size.
        stuck: The share of the window's height that is sticky or fixed, by size.
    """

    text: str
    jargon: list[str]
    title: str
    num_foreign: int
    violations: dict[str, list[tuple[str, str]]]
    widths: dict[str, int]
    covered: dict[str, list[str]]
    stuck: dict[str, float]


def look_at(page):
    """Looks at the screen of a page."""
    main = page.locator("#main")
    text = main.inner_text()
    page.locator("#main details").evaluate_all(_OPEN)
    widths, covered, stuck = {}, {}, {}
    for size, viewport in NARROW.items():
        page.set_viewport_size(viewport)
        widths[size] = page.evaluate("document.documentElement.scrollWidth")
        covered[size] = page.evaluate(_COVERED)
        stuck[size] = page.evaluate(_STUCK)
    violations = {}
    for theme, options in CHECKED.items():
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        faults = Axe().run(page, options=options).response["violations"]
        violations[theme] = [(one["id"], one["nodes"][0]["html"]) for one in faults]
    page.locator("#main pre").evaluate_all(_HIDE)
    jargon = JARGON.findall(main.inner_text())
    page.set_viewport_size(WIDE)
    foreign = page.locator("#main img, #main script").count()
    return Seen(text, jargon, page.title(), foreign, violations, widths, covered, stuck)
