import json

import pytest


@pytest.mark.usefixtures("service_data")
def test_prune_lists_and_removes_what_is_not_kept(tfbbb, run, monkeypatch):
    monkeypatch.setenv("TFBBB_AUDIT_DAYS", "1e-9")
    assert tfbbb("keys", "create", "me", "--scope", "admin").exit_code == 0
    for _ in range(2):
        shown = run("prune", "--dry-run")
        assert shown.stdout.splitlines()[1].split()[0] == "audit"
    (removed,) = json.loads(tfbbb("prune", "--json").stdout)
    assert removed["subject"] == "1 entries"
    assert tfbbb("prune").stderr == "There is nothing to remove.\n"
