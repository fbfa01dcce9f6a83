"""What commands say beside what they print."""

import typer


def echo_next(step: str) -> None:
    """Prints what to do next, beside what the command prints."""
    typer.echo(f"Next: {step}", err=True)


def echo_note(note: str) -> None:
    """Prints a note about the table beside the predictions."""
    typer.echo(note, err=True)
