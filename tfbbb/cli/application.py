"""The Typer application, and commands that share options."""

import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from inspect import Parameter
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption

from tfbbb.cli.errors import errors_in_one_sentence


class Command(TyperCommand):
    """A command each of whose options takes one value, unless it may be repeated.

    An error that the user can fix ends it with one sentence.
    """

    def invoke(self, ctx: Any) -> Any:
        with errors_in_one_sentence():
            return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            # The parser takes away what it has read.
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
            for option in given:
                single = isinstance(option, TyperOption) and not (
                    option.multiple or option.is_flag or option.count
                )
                if single and given.count(option) > 1:
                    ctx.fail(
                        f"The option {option.opts[0]} takes one value: give it once, "
                        "or run the command once for each value. "
                        f"Received: {option.opts[0]} {given.count(option)} times"
                    )
        return super().parse_args(ctx, args)


class Application(typer.Typer):
    """A `typer.Typer` whose commands are `Command`s."""

    def command(  # type: ignore[override]
        self, name: str | None = None, *, cls: type[TyperCommand] = Command, **more: Any
    ) -> Callable[..., Any]:
        return super().command(name, cls=cls, **more)


def with_options(
    declared: Callable[..., Any],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of `declared`, and its result as first argument.

    A context manager is open for the time of the command.
    """
    shared = [*inspect.signature(declared).parameters.values()]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        first, *own = inspect.signature(function).parameters.values()
        named = [each for each in own if each.kind is not Parameter.VAR_KEYWORD]

        @functools.wraps(function)
        def command(**given: object) -> None:
            found = declared(**{each.name: given.pop(each.name) for each in shared})
            is_open = isinstance(found, AbstractContextManager)
            with found if is_open else nullcontext(found) as value:
                function(**{first.name: value}, **given)

        # Those without a default come first.
        every = sorted([*named, *shared], key=lambda x: x.default is not x.empty)
        return _with_parameters(command, [*every, *own[len(named) :]])

    return decorate


def add_job_command(
    app: typer.Typer, function: Callable[..., None], *, without: Collection[str] = ()
) -> None:
    """Adds a command with the options that `JobSpec` declares.

    The options are made when the command is called, so that other commands need not
    wait for the import of `JobSpec`.
    """
    parameters = inspect.signature(function).parameters
    own = [p for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]

    class JobCommand(TyperCommand):
        def make_context(self, *given: Any, **extra: Any) -> Any:
            from tfbbb.cli.job_options import job_options

            options = [
                option.parameter()
                for option in job_options()
                if option.name not in without
                and (option.name in parameters or "options" in parameters)
            ]
            complete = Application(add_completion=False)
            complete.command(self.name)(_with_parameters(function, [*own, *options]))
            command = typer.main.get_command(complete)
            return command.make_context(*given, **extra)

    app.command(function.__name__, cls=JobCommand)(_with_parameters(function, own))


def _with_parameters(
    function: Callable[..., None], parameters: Sequence[Parameter]
) -> Callable[..., None]:
    """Returns a function of which Typer sees other parameters."""

    @functools.wraps(function)
    def command(**given: object) -> None:
        function(**given)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command
