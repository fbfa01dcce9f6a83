"""Finds times until an event of rows whose follow-up may have ended before it."""

import shlex
from collections.abc import Mapping

import numpy as np

from tfbbb.tables.identifiers import words
from tfbbb.tables.row_order import FirstRows

_TIMES = frozenset(
    (
        *("time", "times", "futime", "stime", "survtime", "ttime", "days", "weeks"),
        *("months", "years", "followup", "follow", "survival", "duration", "tenure"),
        *("lifetime", "os", "pfs", "rfs", "dfs", "zeit", "dauer"),
    )
)
_EVENTS = frozenset(
    (
        *("event", "events", "status", "censor", "censored", "cens", "uncensored"),
        *("death", "dead", "died", "deceased", "fustat", "relapse", "relapsed"),
        *("failure", "failed", "churn", "churned", "delta", "arrest", "observed"),
        *("ereignis", "zensiert", "tod"),
    )
)
# Words that a name may have besides.
_JOINING = frozenset(
    (
        *("to", "until", "till", "of", "up", "in", "is", "has", "was", "vital"),
        *("indicator", "flag", "code", "first"),
    )
)


def find_follow_up(
    columns: Mapping[str, FirstRows], target: FirstRows, name: str
) -> tuple[str, str] | None:
    """Returns the column that makes a target a follow-up, and a sentence.

    It is a column of two values that is named like an event beside a target named like
    a time, or a column named like a time beside such a target.
    """
    if _is_time(name, target):
        for other, column in columns.items():
            if _is_event(other, column):
                return other, (
                    f"If it tells whether {name!r} ended with an event or with the "
                    f"observation, {name!r} is only a least time in some rows, and "
                    "predicted times are too short. There is no likelihood for such "
                    "times: use a survival analysis, or predict whether the event "
                    "comes within a time for which each row was observed."
                )
    if _is_event(name, target):
        for other, column in columns.items():
            if _is_time(other, column):
                return other, (
                    f"If it is the time until {name!r} or the end of the observation, "
                    f"it is not known before {name!r} is, and gives it away: leave it "
                    f"out (--ignore {shlex.quote(other)}), and the rows that were "
                    "observed for too short a time, too."
                )
    return None


def _is_time(name: str, column: FirstRows) -> bool:
    known = column.values[~np.isnan(column.values)]
    return (
        column.kind == "numeric"
        and _is_named(name, _TIMES)
        and len(np.unique(known)) > 2
        and bool((known >= 0).all())
    )


def _is_event(name: str, column: FirstRows) -> bool:
    known = column.values[~np.isnan(column.values)]
    return _is_named(name, _EVENTS) and len(np.unique(known)) == 2


def _is_named(name: str, those: frozenset[str]) -> bool:
    """Whether a name has one of those words, and no others, such as `day_of_week`."""
    found = set(words(name))
    return bool(found & those) and found <= _TIMES | _EVENTS | _JOINING
