import errno

import pytest
import typer

from tfbbb.cli.errors import CommandError, errors_in_one_sentence
from tfbbb.tables import TableError


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (CommandError("No.\n  Not here."), "No. Not here."),
        (TableError("The table is empty."), "The table is empty."),
        (
            PermissionError(errno.EACCES, "Permission denied", "/locked/file"),
            "/locked/file: Permission denied.",
        ),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device."),
    ],
)
def test_an_error_the_user_can_fix_is_one_sentence(capsys, error, sentence):
    with pytest.raises(typer.Exit) as end, errors_in_one_sentence():
        raise error
    assert end.value.exit_code == 1
    assert capsys.readouterr().err == f"Error: {sentence}\n"


@pytest.mark.parametrize(
    "error", [ValueError("a fault"), BrokenPipeError(errno.EPIPE, "Broken pipe")]
)
def test_other_errors_keep_their_traceback(capsys, error):
    with pytest.raises(type(error)) as raised, errors_in_one_sentence():
        raise error
    assert raised.value is error
    assert capsys.readouterr().err == ""
