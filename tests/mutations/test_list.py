import pytest

from tests.mutations.mutation import ROOT, Mutation, read_mutations

MUTATIONS = read_mutations()
NAMES = [mutation.name for mutation in MUTATIONS]


def test_there_are_forty_mutations_of_different_names():
    assert len(set(NAMES)) == len(NAMES) >= 40


@pytest.mark.parametrize("mutation", MUTATIONS, ids=NAMES)
def test_mutation_fits_the_code_and_has_tests(mutation):
    source = (ROOT / mutation.file).read_text(encoding="utf-8")
    mutated = mutation.apply(source)
    assert mutated != source
    compile(mutated, mutation.file, "exec")
    assert mutation.tests
    for test in mutation.tests:
        path, _, name = test.partition("::")
        assert path.startswith("tests/")
        assert f"def {name}" in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("source", ["x = 2", "x = 1; y = x = 1"])
def test_text_must_occur_once(source):
    mutation = Mutation("one more", "module.py", "x = 1", "x = 2", ("tests",))
    with pytest.raises(ValueError, match=r"must occur once.*Received: [02] times"):
        mutation.apply(source)
