"""The marks that people write in place of a missing value."""

import functools
import re

import pyarrow as pa
import pyarrow.compute as pc

# The cells of a file without types that are missing in columns of every kind: as other
# programs write them, in this case of letters alone.
MISSING_WORDS = (
    *("", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A"),
    *("NaN", "nan", "-NaN", "-nan", "NULL", "null"),
)
# Also the code of a country or a continent, among others.
NA = "NA"
_FEWEST_CODES, _CODE = 3, r"^[A-Z]{2}$"
# In lower case. In a column of text, "-" and "none" may be categories.
_IN_TEXT = (
    *("", "?", "na", "n/a", "#n/a", "#na", "#n/a n/a", "<na>"),
    *("nan", "-nan", "null", "(null)", "nat"),
)
DASHES = ("-", "--", "---", "–", "—")
_IN_NUMBERS = (*_IN_TEXT, *DASHES, ".", "none", "nil", "n.a.")
# Words that stand for a missing value among numbers, dates and durations. The training
# table decides whether they do.
_WORDS = (
    *("unknown", "unk", "unkn", "not known", "unspecified", "not specified"),
    *("missing", "miss", "mv", "empty", "blank", "undefined", "undef"),
    *("indef", "indeterminate", "invalid", "error", "err", "no data", "nodata"),
    *("no value", "not available", "not applicable", "not reported", "not recorded"),
    *("not stated", "not provided", "not given", "not disclosed", "undisclosed"),
    *("suppressed", "withheld", "confidential", "redacted", "refused"),
    *("declined", "no answer", "no response", "don't know", "dont know", "dk", "nk"),
    *("na/na", "n.d", "nd", "n/d", "n/k", "n/s", "n.s", "n/r", "s/d", "s.d", "k.a"),
    *("k. a", "keine angabe", "unbekannt", "ohne angabe", "inconnu", "non connu"),
    *("non disponible", "desconocido", "sin dato", "sin datos", "desconhecido"),
    *("sem dados", "sconosciuto", "onbekend", "okänd", "ukjent", "ukendt"),
    *("nieznany", "brak", "brak danych", "tbd", "tba", "tbc"),
    *("#ref!", "#value!", "#div/0!", "#num!", "#name?", "#null!", "#error!"),
    *("none given", "n. a", "n.a", "not avail", "nav", "np", "not found", "absent"),
)
_ANY_WORD = "|".join(map(re.escape, _WORDS))
_FAMILIAR = (
    rf"^[\[(<]?(?:{_ANY_WORD})"
    # Marks without letters and digits, and dates that no calendar has.
    r"[\])>.]*$|^[^\pL\d]+$|^0{2,4}[-/.]0{1,2}[-/.]0{2,4}(?: 0[0:]*)?$"
)


def are_missing(texts: pa.Array, *, in_text: bool = False) -> pa.Array:
    """Returns which texts, without spaces around them, mark a missing value."""
    marks = _marks(texts.type, in_text)
    return pc.or_(pc.is_null(texts), pc.is_in(pc.utf8_lower(texts), marks))


def are_familiar(texts: pa.Array) -> pa.Array:
    """Returns which odd cells of a column of numbers usually mark a missing value."""
    return pc.match_substring_regex(pc.utf8_lower(texts), _FAMILIAR)


def is_code_among(others: pa.Array) -> bool:
    """Whether NA is a code of two letters, as the other texts of a column are."""
    codes = pc.match_substring_regex(others, _CODE)
    return len(others) >= _FEWEST_CODES and bool(pc.all(codes).as_py())


def known_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Returns the cells of a file without types, null for NA unless NA is a code."""
    # Two comparisons take a fifth of the time of a search in a set.
    marks = pc.or_(pc.equal(column, NA), pc.equal(column, f" {NA}"))
    if not pc.any(marks).as_py():
        return column
    others = pc.unique(column.filter(pc.invert(marks)))
    if is_code_among(others):
        return column
    return pc.if_else(marks, pa.scalar(None, column.type), column)


@functools.cache
def _marks(type_: pa.DataType, in_text: bool) -> pa.Array:
    return pa.array(_IN_TEXT if in_text else _IN_NUMBERS, type_)
