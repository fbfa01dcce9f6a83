"""What all executors have in common, and the processes of this machine."""

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.training.executor import tasks as functions
from tfbbb.training.executor import (
    InProcessExecutor,
    LocalExecutor,
    Task,
    TaskError,
    make_executor,
)
from tfbbb.training.executor.code_digest import code_digest


@pytest.fixture(scope="module")
def two_processes():
    with LocalExecutor(processes=2) as executor:
        yield executor


def drawing(number):
    return [Task(f"seed {i}", functions.draw, {"seed": i}) for i in range(number)]


@pytest.mark.parametrize("processes", [None, 1, 2])
def test_results_come_in_the_order_of_the_tasks(processes, two_processes):
    executor = two_processes if processes == 2 else make_executor(processes)
    finished = []
    results = executor.run(
        drawing(5), finished=lambda task, result: finished.append(task.key)
    )
    for seed, result in enumerate(results):
        np.testing.assert_array_equal(result, functions.draw(seed))
    assert sorted(finished) == [f"seed {i}" for i in range(5)]


def test_networks_are_equal_for_one_and_two_processes(two_processes, networks):
    found = two_processes.run(functions.trainings())
    np.testing.assert_array_equal(found, networks)
    assert not np.array_equal(found[0], found[1])


def test_each_process_computes_with_its_threads(two_processes):
    task = Task("threads", functions.threads)
    assert two_processes.run([task]) == ["1"]
    assert LocalExecutor(threads=3).run([task]) == ["3"]


def test_a_function_of_a_script_needs_no_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from beside import twice\n"
        "from tfbbb.executor import LocalExecutor, Task\n"
        "print('runs once')\n"
        "def function(x):\n"
        "    return twice(x) + 1\n"
        "tasks = [Task(str(x), function, {'x': x}) for x in range(3)]\n"
        "print(LocalExecutor(processes=2).run(tasks))\n"
    )
    (tmp_path / "beside.py").write_text("def twice(x):\n    return 2 * x\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.stdout == "runs once\n[1, 3, 5]\n", done.stderr


def test_a_killed_process_is_restarted_and_its_task_runs_again(tmp_path, two_processes):
    log = tmp_path / "log"
    tasks = [Task("dies", functions.die, {"path": log, "times": 2}), *drawing(3)]
    results = two_processes.run(tasks)
    assert results[0] == "alive"
    assert log.read_text() == "0\n" * 3
    np.testing.assert_array_equal(results[1:], [functions.draw(i) for i in range(3)])


def test_a_task_that_kills_every_process_ends_the_run(tmp_path, two_processes):
    task = Task("dies", functions.die, {"path": tmp_path / "log", "times": 9})
    expected = "the task 'dies' died 3 times.*Received: signal 9"
    with pytest.raises(TaskError, match=expected):
        two_processes.run([task])


@pytest.mark.parametrize("processes", [None, 2])
def test_an_error_names_its_task_and_is_the_cause(processes, two_processes):
    executor = two_processes if processes == 2 else InProcessExecutor()
    tasks = [*drawing(1), Task("number 7", functions.fail, {"number": 7})]
    with pytest.raises(TaskError, match="task 'number 7' failed: KeyError") as caught:
        executor.run(tasks)
    assert caught.value.key == "number 7"
    assert isinstance(caught.value.__cause__, KeyError)
    if processes:
        assert "tasks.py" in caught.value.__cause__.__notes__[0]


def test_an_error_ends_the_other_tasks_with_their_children(tmp_path, two_processes):
    path = tmp_path / "pids"
    tasks = [
        Task("sleeps", functions.sleep, {"path": path}),
        Task("fails", functions.wait_for, {"path": path}),
    ]
    with pytest.raises(TaskError, match="'fails' failed: ValueError: enough"):
        two_processes.run(tasks)
    for pid in map(int, path.read_text().split()):
        wait_until(lambda pid=pid: not is_running(pid))


def test_processes_end_with_the_program_that_is_killed(tmp_path):
    path = tmp_path / "pids"
    program = (
        "from tests.executor.tasks import sleep\n"
        "from tfbbb.executor import LocalExecutor, Task\n"
        f"LocalExecutor().run([Task('sleeps', sleep, {{'path': {str(path)!r}}})])\n"
    )
    root = Path(__file__).parents[2]
    process = subprocess.Popen([sys.executable, "-c", program], cwd=root)
    wait_until(path.exists)
    process.kill()
    process.wait()
    for pid in map(int, path.read_text().split()):
        wait_until(lambda pid=pid: not is_running(pid))


def wait_until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_run_goes_on_from_its_kept_results(tmp_path):
    log, kept = tmp_path / "log", tmp_path / "kept"
    counting = [
        Task(f"number {i}", functions.count, {"path": log, "number": i})
        for i in range(3)
    ]
    failing = Task("fails", functions.fail, {"number": 1})
    executor = InProcessExecutor()
    with pytest.raises(TaskError):
        executor.run([*counting[:2], failing, counting[2]], directory=kept)
    assert executor.run(counting, directory=kept) == [0, 1, 2]
    assert log.read_text() == "0\n1\n2\n"
    assert not list(kept.glob("unfinished-*"))


def test_a_damaged_or_foreign_result_is_computed_again(tmp_path):
    log, kept = tmp_path / "log", tmp_path / "kept"
    task = Task("number 1", functions.count, {"path": log, "number": 1})
    executor = InProcessExecutor()
    executor.run([task], directory=kept)
    (path,) = kept.iterdir()
    whole = path.read_bytes()
    for content in (b"", whole[:-1], whole[:60] + b"?" + whole[61:], b"foreign"):
        path.write_bytes(content)
        assert executor.run([task], directory=kept) == [1]
        assert path.read_bytes() == whole
    other = Task("number 2", functions.count, {"path": log, "number": 2})
    executor.run([other], directory=kept)
    (second,) = set(kept.iterdir()) - {path}
    second.replace(path)
    assert executor.run([task], directory=kept) == [1]
    assert log.read_text() == "1\n" * 5 + "2\n1\n"


def test_a_task_of_other_arguments_is_computed_again(tmp_path):
    log, kept = tmp_path / "log", tmp_path / "kept"
    for number in (1, 1, 2):
        task = Task("the task", functions.count, {"path": log, "number": number})
        assert InProcessExecutor().run([task], directory=kept) == [number]
    assert log.read_text() == "1\n2\n"


CODE = {
    "the function": ("    return 2\n", "    return 3\n"),
    "a constant of the module": ("    return STEP\nSTEP = 2\n",) * 2,
    "another module": ("    return other.value()\n",) * 2,
}


@pytest.mark.parametrize("what", CODE)
@pytest.mark.parametrize("is_argument", [False, True])
def test_a_task_of_changed_code_is_computed_again(
    tmp_path, monkeypatch, what, is_argument
):
    values = []
    for place, body in enumerate(CODE[what]):
        package = tmp_path / str(place) / "changing"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "other.py").write_text(f"def value():\n    return {place + 2}\n")
        source = f"from changing import other\ndef function():\n{body}"
        source = source.replace("STEP = 2", f"STEP = {place + 2}")
        (package / "work.py").write_text(source)
        for name in [name for name in sys.modules if name.startswith("changing")]:
            del sys.modules[name]
        monkeypatch.syspath_prepend(str(package.parent))
        function = importlib.import_module("changing.work").function
        task = Task("the task", function)
        if is_argument:
            task = Task("the task", functions.call, {"function": function})
        values += InProcessExecutor().run([task], directory=tmp_path / "kept")
    assert values == [2, 3]


def test_function_of_a_notebook_is_known_by_its_code():
    values = []
    for body in ("1", "2", "2"):
        cell = {"__name__": "__main__"}
        exec(f"def half(): return {body}\ndef double(): return 2 * half()", cell)
        values.append(code_digest(cell["double"]))
    assert values[0] != values[1] == values[2]


def test_code_has_the_same_digest_in_every_process():
    program = (
        "from tests.executor import tasks\n"
        "from tfbbb.executor.code_digest import code_digest\n"
        "print(code_digest(tasks.is_known))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {code_digest(functions.is_known)}


def test_tasks_with_the_same_key_are_refused():
    with pytest.raises(ValueError, match="2 tasks with the key 'seed 0'"):
        InProcessExecutor().run(drawing(1) * 2)


def test_a_run_without_tasks_has_no_results():
    assert LocalExecutor().run([], progress="tasks") == []


@pytest.mark.parametrize("arguments", [{"processes": 0}, {"threads": 0}])
def test_numbers_below_one_are_refused(arguments):
    with pytest.raises(ValueError, match=r"positive integer\. Received"):
        LocalExecutor(**arguments)


def test_processes_and_a_cluster_are_refused_together():
    with pytest.raises(ValueError, match=r"Received: processes=2, ray_address='auto'"):
        make_executor(2, "auto")


def test_one_bar_counts_all_tasks(capfd):
    InProcessExecutor().run(drawing(2), progress="seeds")
    assert "seeds 2/2" in capfd.readouterr().err


def test_processes_stay_from_run_to_run():
    task = Task("process", os.getpid)
    with LocalExecutor() as executor:
        first, second = executor.run([task]), executor.run([task])
    assert first == second != [os.getpid()]
    assert executor.run([task]) != first
