"""Complaints about columns: errors that refuse one, and remarks that keep it."""

import shlex
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.tables.cells import Cells
from tfbbb.tables.notations import Notation
from tfbbb.tables.notations.words import OrderedNotation
from tfbbb.tables.parsed_column import ParsedColumn, first_fault
from tfbbb.tables.table_error import ColumnError, TableError
from tfbbb.tables.values import count_cells, first_row

# Of more categories than this, in more than half of the rows, a column may be an
# identifier; of texts nearly all of which differ in so many rows it is one.
_MAX_OF_NO_IDENTIFIER = 50
_FEWEST_IDENTIFIERS, _MOSTLY_DISTINCT = 20, 0.95
_NUMBER_IN_SOME_FORM = (
    r"^[<>~≈(]?\s*[-+−]?\s*\p{Sc}?\s*\d[\d.,]*"
    r"(?:\s*(?:/|-|–|x|×|:|\*)\s*\d[\d.,]*)*\s*(?:[°%]|\s\p{L})?[^\d\s]{0,5}$"
)
# Texts of so many words and characters on average are sentences.
_WORDS_OF_A_SENTENCE, _LENGTH_OF_A_SENTENCE = 4, 30


def check_suits_most_texts(cells: Cells, notation: Notation, asked: str) -> None:
    """Raises `ColumnError` if most texts are not in the notation that is asked for."""
    distinct = cells.texts.distinct
    if not len(distinct):
        return
    wrong = distinct.filter(pa.array(notation.parse(distinct).unreadable))
    if 2 * len(wrong) <= len(distinct):
        return
    reason = f"none of its texts, such as {show_example(distinct)}, is one"
    if len(wrong) < len(distinct):
        number = f"{len(wrong)} of its {len(distinct)} texts"
        reason = f"{number} cannot be, such as {show_example(wrong)}"
    raise unreadable_as_asked(cells.name, asked, reason)


def unreadable_as_asked(name: str, asked: str, reason: str) -> ColumnError:
    """Returns the error of a column that is not what an override says."""
    return ColumnError(
        f"Column {name!r} cannot be read as a {asked}, as asked: {reason}.", name
    )


def show_example(texts: pa.Array) -> str:
    """Returns the first text, quoted."""
    return repr(texts[0].as_py()) if len(texts) else "none"


def check_all_readable(cells: Cells, parsed: ParsedColumn) -> tuple[str, ...]:
    """Returns a remark on infinite cells, which count as missing beside numbers."""
    wrong = parsed.unreadable
    if wrong is not None and cells.may_have_fractions and not parsed.missing.all():
        infinite = wrong & np.isinf(cells.numbers)
        if np.array_equal(infinite, wrong):
            number = int(infinite.sum())
            verb = "counts as a missing value" if number == 1 else "count as missing"
            return (f"Its infinite number, in {count_cells(number)}, {verb}.",)
        parsed = replace(parsed, unreadable=wrong & ~infinite)
    found = first_fault(cells, parsed)
    if found is not None:
        raise TableError(f"Column {cells.name!r} {found}.")
    return ()


def count_unreadable(cells: Cells, notation: Notation | None) -> tuple[str, ...]:
    """Returns a remark on texts that a notation, as asked, counts as missing."""
    if notation is None or cells.kind != "categorical":
        return ()
    wrong = cells.texts.parse(notation).unreadable
    if not wrong.any():
        return ()
    row = first_row(wrong)
    cell = cells.texts.text(row)
    if isinstance(notation, OrderedNotation):
        raise ColumnError(
            f"Column {cells.name!r} has the text {cell!r} in row {row}, which is not "
            f"among the ordered texts {', '.join(notation.levels)}; add it to them, "
            "in its place.",
            cells.name,
        )
    number = int(wrong.sum())
    counted = count_cells(number, "counts", "count")
    return (f"{counted} as missing, such as {cell!r} in row {row}.",)


def remark_on_codes(parsed: ParsedColumn) -> tuple[str, ...]:
    """Returns a remark on texts that are whole numbers, some with a leading zero."""
    texts = parsed.texts
    whole = pc.all(pc.match_substring_regex(texts, r"^\d*$")).as_py()
    codes = texts.filter(pc.match_substring_regex(texts, r"^0\d+$"))
    if not whole or not len(codes):
        return ()
    return (
        f"Its numbers with leading zeros, such as {show_example(codes)}, are codes and "
        "read as categories; number overrules this.",
    )


def check_texts(parsed: ParsedColumn, buckets: int, required: bool) -> tuple[str, ...]:
    """Returns remarks on a column of texts, with so many buckets."""
    distinct = parsed.texts.filter(pc.not_equal(parsed.texts, ""))
    many, number = len(distinct), int((~parsed.missing).sum())
    name = parsed.name
    if number >= _FEWEST_IDENTIFIERS and 2 * many > number:
        length = pc.mean(pc.utf8_length(distinct)).as_py()
        spaces = pc.mean(pc.count_substring(distinct, " ")).as_py()
        if spaces + 1 >= _WORDS_OF_A_SENTENCE and length >= _LENGTH_OF_A_SENTENCE:
            raise ColumnError(
                f"Column {name!r} holds free text, which a model of columns cannot "
                "read; turn it into columns of numbers or categories, such as whether "
                "it mentions a word, or leave it out: "
                f"columns={{{name!r}: 'ignore'}} (--ignore).",
                name,
                unusable=True,
            )
        in_some_form = distinct.filter(
            pc.match_substring_regex(distinct, _NUMBER_IN_SOME_FORM)
        )
        many_differ = many >= _MOSTLY_DISTINCT * number and not required
        if many_differ and 2 * len(in_some_form) > many:
            raise ColumnError(
                f"Column {name!r} holds numbers in forms that cannot be read together, "
                f"such as {show_example(in_some_form)}, so it is left out; write one "
                "number in one unit in each cell, and pairs as two columns.",
                name,
                unusable=True,
            )
        if many_differ:
            has = "a different text in each row"
            if many < number:
                has = f"{many} different texts in {number} rows"
            option = shlex.quote(f"{name}=text")
            raise ColumnError(
                f"Column {name!r} has {has}, like an identifier, so a model learns "
                "nothing from it. Name it in `features` (or say --column "
                f"{option}) to keep it.",
                name,
                unusable=True,
            )
    remarks = []
    if many > _MAX_OF_NO_IDENTIFIER and 2 * many > number:
        remarks.append(
            f"It has {many} distinct texts in {len(parsed.values)} rows and looks like "
            "an identifier."
        )
    if buckets:
        remarks.append(
            f"Its {many} distinct texts are distributed over {buckets} buckets by a "
            "hash; texts of one bucket differ by their mean target alone."
        )
    return tuple(remarks)


def without_values(name: str, everywhere: bool) -> ColumnError:
    """Returns the error of a column without values, in all or in the training rows."""
    where = "" if everywhere else " in the training rows"
    return ColumnError(
        f"Column {name!r} has no values{where}; leave it out.",
        name,
        unusable=everywhere,
    )
