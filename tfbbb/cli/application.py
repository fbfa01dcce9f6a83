"""A Typer application whose commands refuse an option that is given twice."""

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption


class Command(TyperCommand):
    """A command each of whose options takes one value, unless it may be repeated."""

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
