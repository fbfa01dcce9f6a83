import json
import os

import pytest


@pytest.mark.usefixtures("service_data")
def test_prune_lists_and_removes_what_is_not_kept(tfbbb, tmp_path):
    assert tfbbb("keys", "create", "me", "--scope", "admin").exit_code == 0
    log = tmp_path / ".tfbbb" / "jobs" / ("a" * 24) / "log.txt"
    log.parent.mkdir(parents=True)
    log.write_text("a log\n")
    os.utime(log, (1, 1))
    shown = tfbbb("prune", "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines()[1].split()[:4] == ["log", "of", "job", "6"]
    assert log.exists()
    (removed,) = json.loads(tfbbb("prune", "--json").stdout)
    assert (removed["subject"], log.exists()) == ("a" * 24, False)
    assert tfbbb("prune").stderr == "There is nothing to remove.\n"
