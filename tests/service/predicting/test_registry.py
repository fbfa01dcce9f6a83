import errno
import gc
import json
import shutil
import time
from pathlib import Path
from unittest import mock

import numpy as np
import psutil
import pytest
import tensorflow as tf

from service.api.labels.repository import move
from service.predicting import version as version_module
from service.predicting.adoption import Ledger
from service.predicting.descriptions import model_status, model_summary
from service.predicting.metrics import loaded_metrics
from service.predicting.registry import ModelRegistry
from service.predicting.version import VersionState
from service.shared.errors import Unavailable
from tests.service.stores import directory_store
from tests.waiting import set_clock
from tfbbb.export import reader
from tfbbb.export.exported_model import ExportedModel
from tfbbb.export.manifest import MANIFEST_PATH


@pytest.fixture
def ledger(database, registry_root):
    return Ledger(database, directory_store(registry_root))


@pytest.fixture
def registry(registry_root, ledger):
    registry = ModelRegistry(directory_store(registry_root), ledger)
    registry.refresh()
    return registry


def states(registry, name):
    return {version.number: version.state for version in registry.versions(name)}


def test_labelled_version_stays_loaded_when_a_newer_one_takes_charge(
    registry, registry_root, database
):
    move(database, "diabetes", "champion", 2)
    shutil.copytree(registry_root / "diabetes" / "1", registry_root / "diabetes" / "10")
    registry.refresh()
    loaded, waiting = VersionState.AVAILABLE, VersionState.START
    assert states(registry, "diabetes") == {10: loaded, 2: loaded, 1: waiting}
    move(database, "diabetes", "champion", 1)
    registry.refresh()
    assert states(registry, "diabetes") == {10: loaded, 2: waiting, 1: loaded}


def test_altered_version_leaves_the_good_one_in_charge(registry, registry_root):
    broken = registry_root / "diabetes" / "3"
    shutil.copytree(registry_root / "diabetes" / "2", broken)
    with (broken / "saved_model.pb").open("ab") as graph:
        graph.write(b"\0")
    registry.refresh()
    assert registry.version("diabetes").number == 2
    assert states(registry, "diabetes")[3] is VersionState.END
    with pytest.raises(Unavailable, match=r"Version 3 .* saved_model\.pb .* sha256"):
        registry.version("diabetes", 3).load()


def test_loads_and_unloads_leave_memory_threads_and_descriptors(registry):
    process = psutil.Process()
    row = [[1.0, 2.0, 3.0]]

    def load(times):
        for _ in range(times // 2):
            for version in registry.versions("diabetes"):
                version.load().run(ExportedModel.predict, row, 20)
                version.unload()
        gc.collect()
        return process.memory_info().rss, process.num_threads(), process.num_fds()

    before, after = load(6), load(30)
    assert np.all(np.divide(after, before) < 1.1)


def stumbling(monkeypatch, fault):
    """Lets the loading of a model fail, until the fault is None."""
    stumble = mock.Mock(wraps=reader.load, side_effect=fault)
    monkeypatch.setattr(reader, "load", stumble)
    return stumble


@pytest.fixture
def clock(monkeypatch):
    """The time, which passes only where a test says."""
    now = [time.monotonic()]
    set_clock(monkeypatch, version_module, monotonic=lambda: now[0])
    return now


@pytest.mark.parametrize(
    "fault",
    [
        MemoryError(),
        OSError(errno.ESTALE, "Stale file handle"),
        tf.errors.ResourceExhaustedError(None, None, "no memory"),
    ],
)
def test_version_is_tried_again_after_a_fault_that_passes(
    registry, monkeypatch, clock, fault
):
    version = registry.version("diabetes", 1)
    stumble = stumbling(monkeypatch, fault)
    for pause in (1, 2, 4):
        with pytest.raises(Unavailable, match=f"tried again in {pause} s"):
            version.load()
        calls = stumble.call_count
        with pytest.raises(Unavailable, match=r"Version 1 .* tried again"):
            version.load()
        assert stumble.call_count == calls
        status = model_status("diabetes", [version], None).model_version_status[0]
        assert (status.state, status.status.error_code) == ("START", "UNAVAILABLE")
        assert "tried again" in status.status.error_message
        clock[0] += pause
    stumble.side_effect = None
    version.load()
    assert states(registry, "diabetes")[1] is VersionState.AVAILABLE
    (status,) = model_status("diabetes", [version], None).model_version_status
    assert (status.status.error_code, status.status.error_message) == ("OK", "")


def test_fault_of_the_files_is_not_tried_again(registry, monkeypatch, clock):
    version = registry.version("diabetes", 1)
    fault = ValueError("no such op")
    stumble = stumbling(monkeypatch, fault)
    for _ in range(2):
        with pytest.raises(Unavailable, match="Version 1"):
            version.load()
        clock[0] += 1000.0
    assert stumble.call_count == 1
    assert states(registry, "diabetes")[1] is VersionState.END


@pytest.mark.parametrize("place", ["diabetes/.3.tmp", "diabetes/007", "a:b/1"])
def test_what_is_not_a_version_is_passed_over(registry, registry_root, place):
    shutil.copytree(registry_root / "diabetes" / "2", registry_root / place)
    registry.refresh()
    assert registry.names() == ["diabetes"]
    assert states(registry, "diabetes").keys() == {1, 2}


def test_model_without_a_version_is_warned_of_once(registry, registry_root, caplog):
    for place in ("unversioned", ".staging"):
        shutil.copytree(registry_root / "diabetes" / "2", registry_root / place)
    registry.refresh()
    registry.refresh()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    message = record.getMessage()
    assert f"{registry_root / 'unversioned'} is not served" in message
    assert "NAME/VERSION" in message


def test_loaded_versions_are_served_while_their_directory_is_gone(
    registry, registry_root
):
    served = registry.version("diabetes")
    elsewhere = registry_root.rename(registry_root.with_name("elsewhere"))
    registry_root.mkdir()
    registry.refresh()
    assert registry.version("diabetes") is served
    with pytest.raises(Unavailable, match="another one than before, and empty"):
        registry.check_ready()
    registry_root.rmdir()
    shutil.rmtree(elsewhere / "diabetes" / "2")
    elsewhere.rename(registry_root)
    registry.refresh()
    registry.check_ready()
    assert registry.version("diabetes").number == 1


def test_versions_not_used_for_longest_make_room(registry_root, ledger):
    for name in ("a", "b", "c"):
        shutil.copytree(registry_root / "diabetes" / "2", registry_root / name / "1")
    shutil.rmtree(registry_root / "diabetes")
    files = filter(Path.is_file, (registry_root / "a").rglob("*"))
    size = sum(file.stat().st_size for file in files)
    registry = ModelRegistry(directory_store(registry_root), ledger, 2.5 * size)
    registry.refresh()

    def loaded():
        return {n for n, (one,) in registry.catalog().items() if one.is_loaded}

    assert loaded() == {"b", "c"}
    registry.version("b").load()
    registry.load(registry.version("a"))
    assert loaded() == {"a", "b"}
    registry.refresh()
    assert loaded() == {"a", "b"}
    assert registry.latest("c") is not None


def add_judged_version(root, number, becomes_latest):
    """Copies version 1 of diabetes, with what its training said of it."""
    version = root / "diabetes" / str(number)
    shutil.copytree(root / "diabetes" / "1", version)
    path = version / MANIFEST_PATH
    manifest = json.loads(path.read_text())
    judgement = {"learned": becomes_latest, "becomes_latest": becomes_latest}
    manifest["lineage"] = {"judgement": judgement}
    path.write_text(json.dumps(manifest))


def test_version_that_learned_nothing_does_not_take_charge(registry, registry_root):
    add_judged_version(registry_root, 10, becomes_latest=False)
    registry.refresh()
    assert registry.version("diabetes").number == 2
    assert registry.version("diabetes", 10).load() is not None
    figures = {
        (sample.name, *sample.labels.values()): sample.value
        for family in loaded_metrics(registry)
        for sample in family.samples
    }
    assert figures["tfbbb_model_versions_waiting", "diabetes"] == 1
    add_judged_version(registry_root, 11, becomes_latest=True)
    registry.refresh()
    assert registry.version("diabetes").number == 11


def test_version_that_learned_nothing_answers_if_there_is_no_other(
    registry, registry_root
):
    add_judged_version(registry_root, 10, becomes_latest=False)
    for number in (1, 2):
        shutil.rmtree(registry_root / "diabetes" / str(number))
    registry.refresh()
    assert registry.version("diabetes").number == 10
    _, judged, _ = loaded_metrics(registry)
    (labels,) = [sample.labels for sample in judged.samples]
    assert labels == {"model": "diabetes", "verdict": "learned nothing"}
    found = model_summary("diabetes", registry.versions("diabetes"), None)
    assert found.newest.verdict == "learned nothing"
