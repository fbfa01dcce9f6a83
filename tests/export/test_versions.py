from tfbbb.export.versions import newest_version, next_version


def test_versions_count_up_from_one(tmp_path):
    root = tmp_path / "name"
    assert next_version(root) == root / "1"
    for name in ("1", "9", "10"):
        (root / name).mkdir(parents=True)
    assert next_version(root) == root / "11"


def test_what_is_no_version_is_not_counted(tmp_path):
    for name in (".staging-99-ab", "latest", "12x", "-3", "\u0667", "2"):
        (tmp_path / name).mkdir()
    assert next_version(tmp_path) == tmp_path / "3"


def test_newest_version_is_the_highest_that_holds_a_model(tmp_path):
    assert newest_version(tmp_path) is None
    for name in ("9", "10", "011", "latest", ".staging-12-ab"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "saved_model.pb").touch()
    (tmp_path / "13").mkdir()
    assert newest_version(tmp_path) == tmp_path / "10"
