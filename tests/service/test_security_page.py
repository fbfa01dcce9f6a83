"""The attacks in SECURITY.md are tests that exist."""

import re
from pathlib import Path

HERE = Path(__file__).parent
ROW = re.compile(r"^\| (.+) \| (.+) \| `(\S+)::(\S+)` \|$", re.MULTILINE)


def test_every_attack_of_the_table_is_a_test():
    rows = ROW.findall((HERE.parents[1] / "SECURITY.md").read_text())
    assert len(rows) >= 20
    for attack, _, file, name in rows:
        assert f"def {name}(" in (HERE / file).read_text(), attack
