"""The wheels and the source distribution: their files, and a wheel that works alone."""

import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

import service
import tfbbb
from tests.documents import blocks, short_form
from tfbbb import version

ROOT = Path(tfbbb.__file__).parent.parent


def run(*command, cwd):
    """Returns the output of a command."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(autouse=True, scope="module")
def installed_packages_alone():
    """A path of the caller would put the clone before the installation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONPATH", raising=False)
        yield


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A source distribution, and the wheel that is built from it alone."""
    output = tmp_path_factory.mktemp("packages")
    build = (sys.executable, "-m", "hatchling", "build", "--directory", output)
    run(*build, "--target", "sdist", cwd=ROOT)
    (sdist,) = output.glob("*.tar.gz")
    unpacked = tmp_path_factory.mktemp("sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    run(*build, "--target", "wheel", cwd=source)
    run(*build, "--target", "wheel", cwd=source / "deploy" / "predict")
    (wheel,) = output.glob("tfbbb-*.whl")
    (predict,) = output.glob("tfbbb_predict-*.whl")
    return sdist, wheel, predict


def small_wheel():
    """What `tfbbb-predict` lacks of the dependencies of `tfbbb`, and its extras."""
    config = tomllib.loads((ROOT / "deploy" / "predict" / "pyproject.toml").read_text())
    return config["tool"]["hatch"]["metadata"]["hooks"]["custom"]


def metadata(wheel):
    with ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(name).decode())


def pinned(lock):
    """Returns the pinned versions of a lock file, by name and marker."""
    text = (ROOT / lock).read_text()
    return set(re.findall(r"^\S+==.+?(?= \\$)", text, re.MULTILINE))


def make_environment(folder):
    """Makes a virtual environment without packages; returns its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin" / "python"


def install(python, *what, cwd):
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet")
    run(*pip, "--no-compile", *what, cwd=cwd)


def install_beside(wheel, folder):
    """Returns the commands of an environment with a wheel beside present packages."""
    python = make_environment(folder)
    install(python, "--no-deps", "--no-index", wheel, cwd=folder)
    site = run(
        python,
        "-c",
        "import sysconfig; print(sysconfig.get_path('purelib'))",
        cwd=folder,
    )
    present = [path for path in sys.path if Path(path).name == "site-packages"]
    # A path of a .pth file has its own .pth files ignored, so that the editable
    # installation of the tree is not found.
    Path(site.strip(), "present.pth").write_text("\n".join(present))
    return folder / "bin", Path(site.strip())


@pytest.fixture(scope="module")
def installed(packages, tmp_path_factory):
    """The commands of an environment with the wheel of `tfbbb`."""
    return install_beside(packages[1], tmp_path_factory.mktemp("installed"))[0]


@pytest.fixture(scope="module")
def installed_small(packages, tmp_path_factory):
    """The commands of `tfbbb-predict`, without the libraries of training."""
    folder = tmp_path_factory.mktemp("installed_small")
    commands, site = install_beside(packages[2], folder)
    for name in small_wheel()["without"]:
        module = {"scikit-learn": "sklearn"}.get(name, name).replace("-", "_")
        text = f"raise ModuleNotFoundError('{module}', name='{module}')"
        (site / f"{module}.py").write_text(text)
    return commands


def test_twine_finds_no_fault(packages, tmp_path):
    said = run(
        sys.executable, "-m", "twine", "check", "--strict", *packages, cwd=tmp_path
    )
    assert said.count("PASSED") == 3, said


def test_a_tag_of_another_version_builds_nothing():
    command = ("make", "--assume-old=install", "packages", "TAG=v0.0.0")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode
    assert f"The tag must be v{version.__version__}" in done.stderr
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    steps = workflow["jobs"]["build"]["steps"]
    assert 'make packages TAG="$GITHUB_REF_NAME"' in [x.get("run") for x in steps]


@pytest.mark.parametrize("place", [1, 2], ids=["tfbbb", "tfbbb-predict"])
def test_a_wheel_has_every_file_of_the_packages_and_no_other(packages, place):
    expected = {
        path.relative_to(ROOT).as_posix()
        for package in (tfbbb, service)
        for path in Path(package.__file__).parent.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"tfbbb/py.typed", "service/web/index.html"} < expected
    expected.add("tfbbb/commit.txt")
    with ZipFile(packages[place]) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == expected


def test_both_wheels_have_the_same_metadata_but_for_dependencies(packages):
    own, other = map(metadata, packages[1:])
    for field in (
        *("Version", "License-Expression", "Keywords", "Requires-Python"),
        "Classifier",
    ):
        assert own.get_all(field)
        assert own.get_all(field) == other.get_all(field), field
    entries = []
    for wheel in packages[1:]:
        with ZipFile(wheel) as archive:
            (name,) = (n for n in archive.namelist() if n.endswith("entry_points.txt"))
            entries.append(archive.read(name))
    assert entries[0] == entries[1]


def test_the_small_wheel_lacks_what_training_needs_alone(packages):
    own, other = (
        set(metadata(wheel).get_all("Requires-Dist")) for wheel in packages[1:]
    )
    assert other < own
    missing = {line for line in own - other if "extra ==" not in line}
    assert {re.split(r"[^\w-]", line)[0] for line in missing} == set(
        small_wheel()["without"]
    )
    assert set(metadata(packages[2]).get_all("Provides-Extra")) == set(
        small_wheel()["extras"]
    )


def test_the_images_have_the_same_version_of_each_package():
    small, full = pinned("requirements-predict.lock"), pinned("requirements-image.lock")
    assert small < full
    assert any(line.startswith("numpy==") for line in small)
    assert not any(line.startswith(("tensorflow", "keras")) for line in small)


def test_the_source_distribution_has_the_files_to_build_and_test(packages):
    with tarfile.open(packages[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        assert name in names
    for name in (
        "tests/test_packages.py",
        "docs/keras.md",
        "benchmarks/published.toml",
    ):
        assert name in names


def test_both_packages_are_imported_from_the_wheel(installed, tmp_path):
    program = "import tfbbb, service; print(tfbbb.__file__); print(service.__file__)"
    for place in run(installed / "python", "-c", program, cwd=tmp_path).splitlines():
        assert Path(place).is_relative_to(installed.parent), place


def test_the_wheel_says_its_commit(installed, tmp_path):
    said = run(installed / "tfbbb", "--version", cwd=tmp_path)
    commit = version.commit().removesuffix("-dirty")
    assert re.fullmatch(rf"tfbbb \S+ \(commit {commit}(-dirty)?\)\n", said), said


def test_the_commit_of_a_build_comes_from_its_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_COMMIT", "c0ffee")
    build = (sys.executable, "-m", "hatchling", "build", "--directory", tmp_path)
    run(*build, "--target", "wheel", cwd=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        assert archive.read("tfbbb/commit.txt") == b"c0ffee\n"


def test_a_source_without_build_and_clone_has_an_unknown_commit(tmp_path):
    """Git is not asked: the folder may lie in the clone of something else."""
    (tmp_path / "tfbbb").mkdir()
    (tmp_path / "tfbbb" / "__init__.py").touch()
    (tmp_path / "tfbbb" / "version.py").write_bytes(Path(version.__file__).read_bytes())
    program = "from tfbbb.version import commit; print(commit())"
    assert run(sys.executable, "-c", program, cwd=tmp_path) == "unknown\n"


def test_the_commands_of_the_wheel_have_help(installed, tmp_path):
    said = run(installed / "tfbbb", "--help", cwd=tmp_path)
    for command in ("train", "predict", "serve", "demo", "remote"):
        assert re.search(rf"\b{command}\b", said), said


def test_the_wheel_creates_a_database(installed, tmp_path):
    program = (
        "from service.shared.database import Database, create_tables\n"
        "create_tables(Database('sqlite:///jobs.sqlite3'))\n"
    )
    run(installed / "python", "-c", program, cwd=tmp_path)
    assert (tmp_path / "jobs.sqlite3").stat().st_size > 0


def test_the_program_of_the_readme_runs_and_the_small_wheel_predicts(
    installed, installed_small, tmp_path
):
    (program, *_) = map(short_form, blocks("README.md", "python"))
    said = run(installed / "python", "-c", program, cwd=tmp_path)
    assert "log-likelihood per row: -" in said
    asks = (
        "import tfbbb\n"
        "model = tfbbb.load('saved_models/mine/1')\n"
        "row = [59, 2, 32.1, 101, 157, 93.2, 38, 4, 4.9, 87]\n"
        "prediction = model.predictive([row])\n"
        "print(prediction.mean.shape)\n"
    )
    assert run(installed_small / "python", "-c", asks, cwd=tmp_path) == "(1, 1)\n"


@pytest.mark.slow
def test_the_demo_runs_in_a_bare_environment(packages, tmp_path):
    """Installs TensorFlow anew, of 2 GB, which are deleted at the end."""
    _, wheel, _ = packages
    with tempfile.TemporaryDirectory() as folder:
        python = make_environment(Path(folder))
        install(python, f"{wheel}[service]", cwd=tmp_path)
        said = run(python.with_name("tfbbb"), "demo", cwd=tmp_path)
    assert "stopped the service" in said
    assert (tmp_path / "diabetes.png").is_file()
    assert list(tmp_path.glob("saved_models/diabetes/1/saved_model.pb"))
