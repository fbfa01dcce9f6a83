"""Where the site has the pages of the repository, and their links."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import tfbbb
from tests.documents import PAGES

# A link, outside of code.
_LINK = re.compile(r"`[^`\n]+`|\[([^\]]*)\]\(([^)\s]+)\)")


def page_of_site(page: str) -> str:
    """Returns where the site has a page of the repository."""
    return "index.md" if page == "README.md" else page.removeprefix("docs/")


def site_link(page: str, target: str) -> str | None:
    """Returns a link of a page as the site has it; None if its target is not there."""
    path, hash_, anchor = target.partition("#")
    if not path or ":" in path:
        return target
    found = Path(os.path.normpath(Path(page).parent / path))
    if str(found) in PAGES:
        to = page_of_site(str(found))
    elif found.parts[0] == "tfbbb":
        to = f"api/{_public_name('.'.join(found.parts))}.md"
    elif found.suffix in (".png", ".svg"):
        to = page_of_site(str(found))
    else:
        return None
    start = Path(page_of_site(page)).parent
    return os.path.relpath(to, start) + hash_ + anchor


def _public_name(module: str) -> str:
    """Returns the name by which programs use a module or the folder that it is in.

    >>> _public_name("tfbbb.bayes.posteriors"), _public_name("tfbbb.lab.evidence.elbo")
    ('tfbbb.posteriors', 'tfbbb.lab.evidence')
    """
    for name, home in tfbbb.MODULES.items():
        if name != "lab" and f"{module}.".startswith(f"{home}."):
            return f"tfbbb.{name}"
    return ".".join(module.split(".")[:3])


def with_site_links(
    page: str, text: str, link: Callable[[str, str], str | None] = site_link
) -> str:
    """Returns prose with the links of the site, or of another form of its pages."""

    def replace(match: re.Match[str]) -> str:
        if match[2] is None:
            return match[0]
        to = link(page, match[2])
        return match[1] if to is None else f"[{match[1]}]({to})"

    return _LINK.sub(replace, text)
