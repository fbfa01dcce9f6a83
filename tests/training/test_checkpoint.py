import numpy as np
import pytest

from tests.small_disk import small_files
from tests.waiting import set_clock
from tfbbb.training import checkpoint
from tfbbb.training.checkpoint import Checkpoints

STATE = {"best": {"epoch": 3, "val_nll": 0.1}}
ARRAYS = {
    "kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
    "step": np.array(7, np.int64),
    "none": np.zeros((0, 4), np.float16),
    "random state": np.array([1, 2], np.uint32),
}


def test_what_was_written_is_read(tmp_path):
    checkpoints = Checkpoints(tmp_path / "made", 30, "of this")
    assert checkpoints.read() is None
    checkpoints.write(7, STATE, ARRAYS)
    step, state, arrays = Checkpoints(tmp_path / "made", 30, "of this").read()
    assert (step, state) == (7, STATE)
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


@pytest.mark.parametrize(
    "damage",
    [
        *(lambda content, at=at: content[:at] for at in (0, 10, 100, -1)),
        # A number of another value.
        lambda content: content.replace(np.float32(5).tobytes(), b"?" * 4),
    ],
)
def test_a_damaged_checkpoint_is_ignored(tmp_path, damage):
    checkpoints = Checkpoints(tmp_path, 30, "of this")
    checkpoints.write(1, STATE, ARRAYS)
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    path.write_bytes(damage(content))
    assert path.read_bytes() != content
    with pytest.warns(UserWarning, match="is damaged and ignored"):
        assert checkpoints.read() is None


def test_the_latest_checkpoint_is_kept_alone(tmp_path):
    checkpoints = Checkpoints(tmp_path, 30, "of this")
    for step in (9, 10):
        checkpoints.write(step, STATE, ARRAYS)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000000010"]


def test_a_write_that_was_cut_off_is_not_seen(tmp_path):
    checkpoints = Checkpoints(tmp_path, 30, "of this")
    checkpoints.write(1, STATE, ARRAYS)
    (tmp_path / "unfinished-checkpoint").write_bytes(b"tfbbb")
    assert checkpoints.read()[0] == 1
    checkpoints.write(2, STATE, ARRAYS)
    assert not (tmp_path / "unfinished-checkpoint").exists()


def test_a_write_that_fails_leaves_the_ones_before(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path, 30, "of this")
    checkpoints.write(1, STATE, ARRAYS)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tfbbb.training.checkpoint.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoints.write(2, STATE, ARRAYS)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000000001"]


def test_a_checkpoint_without_room_names_its_directory(tmp_path):
    checkpoints = Checkpoints(tmp_path, 30, "of this")
    with small_files(1000), pytest.raises(OSError, match="File too large") as caught:
        checkpoints.write(1, STATE, {"a": np.zeros(5000)})
    assert caught.value.filename == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_another_training_is_ignored(tmp_path):
    Checkpoints(tmp_path, 30, "of this").write(1, STATE, ARRAYS)
    with pytest.warns(UserWarning, match="other rows, another spec or another version"):
        assert Checkpoints(tmp_path, 30, "of that").read() is None


def test_a_checkpoint_is_due_when_its_time_has_passed(tmp_path, monkeypatch):
    now = [100.0]
    set_clock(monkeypatch, checkpoint, monotonic=lambda: now[0])
    checkpoints = Checkpoints(tmp_path, 30, "of this")
    assert not checkpoints.due
    now[0] = 130.0
    assert checkpoints.due
    checkpoints.write(1, STATE, ARRAYS)
    assert not checkpoints.due
