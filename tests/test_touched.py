import types

import pytest

from tests.touched import RULES, Budget, Tree, touched_tests

FILES = {
    "tfbbb/posteriors/__init__.py": "from tfbbb.posteriors.low_rank import LowRank\n",
    "tfbbb/posteriors/low_rank.py": '""">>> 1\n1\n"""\nclass LowRank: pass\n',
    "tfbbb/model.py": "import tfbbb.posteriors.low_rank\n",
    "service/api/jobs/endpoints.py": "def submit(): pass\n",
    "tests/every_layer.py": "KINDS = []\n",
    "tests/test_model.py": "import tfbbb\n",
    "tests/posteriors/conftest.py": "",
    "tests/posteriors/test_low_rank.py": "import tfbbb\n",
    "tests/posteriors/test_all.py": "names = ['low_rank']\n",
    "tests/layers/test_layers.py": "from tests.every_layer import KINDS\n",
    "tests/layers/test_kernels.py": "import tfbbb\ntfbbb.posteriors.LowRank\n",
    "tests/service/api/jobs/test_endpoints.py": "",
    "tests/test_documents.py": "",
    "tests/test_document_links.py": "",
}


@pytest.fixture
def tree(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Tree(tmp_path)


def test_nearest_tests_of_a_module_come_first(tree):
    assert touched_tests(tree, ["tfbbb/posteriors/low_rank.py"]) == [
        # Its examples and its own tests,
        "tfbbb/posteriors/low_rank.py",
        "tests/posteriors/test_low_rank.py",
        # those that name its family, in its folder and elsewhere,
        "tests/posteriors/test_all.py",
        "tests/layers/test_kernels.py",
        # and those of a module that imports it.
        "tests/test_model.py",
    ]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("service/api/jobs/endpoints.py", ["tests/service/api/jobs/test_endpoints.py"]),
        ("tests/layers/test_kernels.py", ["tests/layers/test_kernels.py"]),
        ("tests/every_layer.py", ["tests/layers/test_layers.py"]),
        (
            "tests/posteriors/conftest.py",
            ["tests/posteriors/test_all.py", "tests/posteriors/test_low_rank.py"],
        ),
        ("docs/keras.md", ["tests/test_document_links.py", "tests/test_documents.py"]),
        ("pyproject.toml", []),
        ("tests/layers/test_deleted.py", []),
    ],
)
def test_files_of_every_kind_touch_their_tests(tree, changed, expected):
    assert touched_tests(tree, [changed]) == expected


def test_importers_of_a_deleted_module_are_tested(tree):
    (tree.root / "tfbbb/posteriors/low_rank.py").unlink()
    tree = Tree(tree.root)
    assert "tests/test_model.py" in touched_tests(
        tree, ["tfbbb/posteriors/low_rank.py"]
    )


def items(*names):
    return [types.SimpleNamespace(nodeid=name) for name in names]


def test_first_cases_run_before_the_others():
    collected = items("a::f[1]", "a::f[2]", "b::g", "b::h[1]")
    Budget(0.0).pytest_collection_modifyitems(collected)
    assert [i.nodeid for i in collected] == ["a::f[1]", "b::g", "b::h[1]", "a::f[2]"]


def test_tests_of_pages_run_for_changed_pages_only():
    collected = items("a::f[docs/keras.md]", "a::f[README.md]", "a::g")
    Budget(0.0, ["README.md", "x.py"]).pytest_collection_modifyitems(collected)
    assert [item.nodeid for item in collected] == ["a::f[README.md]", "a::g"]


def test_no_test_starts_once_the_time_is_over():
    (item,) = items("a::f")
    budget = Budget(float("inf"))
    assert budget.pytest_runtest_protocol(item) is None
    budget.ends_at = float("-inf")
    assert budget.pytest_runtest_protocol(item)
    assert budget.left_out == ["a::f"]


def test_rules_run_whatever_the_time():
    collected = items(*(f"{rule}::f[{case}]" for rule in RULES for case in "ab"))
    budget, in_order = Budget(float("-inf")), list(collected)
    budget.pytest_collection_modifyitems(collected)
    assert collected == in_order
    assert not any(map(budget.pytest_runtest_protocol, collected))
