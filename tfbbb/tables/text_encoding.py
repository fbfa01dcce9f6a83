"""The bytes of a text file, compressed or not, and its encoding."""

import codecs
import gzip
import io
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import pyarrow as pa

from tfbbb.tables.format import BEGINNING_BYTES
from tfbbb.tables.table_error import TableError

# Decodes bytes that a codec lacks as Windows-1252, or as Latin-1 what that lacks.
AS_WINDOWS_1252 = "tfbbb-as-windows-1252"
Compression = Literal["gzip", "zstd"]


@dataclass(frozen=True)
class CsvSource:
    """The bytes of a CSV file."""

    path: Path
    compression: Compression | None
    longest: int

    def open(self) -> io.BufferedReader:
        """Opens the file."""
        if self.compression == "gzip":
            return io.BufferedReader(gzip.open(self.path))
        if self.compression == "zstd":
            return io.BufferedReader(
                pa.input_stream(str(self.path), compression="zstd")
            )
        return self.path.open("rb")

    def open_as_utf8(self, encoding: str) -> io.BufferedReader | pa.NativeFile:
        """Opens a text in some encoding as UTF-8."""
        file = self.open()
        if encoding == "utf-8":
            return file
        return pa.transcoding_input_stream(pa.PythonFile(file, "r"), encoding, "utf-8")

    def beginning(self) -> bytes:
        """Returns the first `BEGINNING_BYTES`."""
        with self.open() as file:
            return file.read(BEGINNING_BYTES)

    def lines(
        self, encoding: str, *, errors: str = "strict", is_damaged: bool = False
    ) -> Iterator[str]:
        """Yields the lines with their line ends."""
        codec = _codec(encoding)
        if is_damaged:
            errors = AS_WINDOWS_1252
        with (
            self.open() as file,
            io.TextIOWrapper(file, codec, errors=errors, newline="") as text,
        ):
            number = 1
            while line := text.readline(self.longest):
                if len(line) == self.longest:
                    raise TableError(
                        f"{self.path}: line {number} is longer than {self.longest} "
                        "characters; is it a CSV file?"
                    )
                yield line
                number += 1


def decode(beginning: bytes, encoding: str, *, is_damaged: bool) -> str:
    """Returns the text of the first bytes of a file, which may cut a character."""
    errors = AS_WINDOWS_1252 if is_damaged else "ignore"
    return codecs.getincrementaldecoder(_codec(encoding))(errors).decode(beginning)


def _codec(encoding: str) -> str:
    return "utf-8-sig" if encoding == "utf-8" else encoding


def _decode_as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    wrong = error.object[error.start : error.end]
    text = "".join(
        byte.decode("cp1252", errors="ignore") or byte.decode("latin-1")
        for byte in (wrong[place : place + 1] for place in range(len(wrong)))
    )
    return text, error.end


codecs.register_error(AS_WINDOWS_1252, _decode_as_windows_1252)


# The name of a codec of Python.
Encoding: TypeAlias = str

_UNMARKED = {
    "cp1252": "Windows-1252 (Western European)",
    "cp1250": "Windows-1250 (Central European)",
    "iso8859-15": "ISO 8859-15 (Western European)",
    "iso8859-2": "ISO 8859-2 (Central European)",
    "cp1251": "Windows-1251 (Cyrillic)",
    "cp1253": "Windows-1253 (Greek)",
    "cp1254": "Windows-1254 (Turkish)",
    "cp1255": "Windows-1255 (Hebrew)",
    "cp1256": "Windows-1256 (Arabic)",
    "cp850": "DOS 850 (Western European)",
    "cp866": "DOS 866 (Cyrillic)",
    "koi8-r": "KOI8-R (Cyrillic)",
    "mac-roman": "Mac Roman (Western European)",
    "big5": "Big5 (traditional Chinese)",
    "gb18030": "GB 18030 (Chinese)",
    "cp932": "Shift-JIS (Japanese)",
    "euc-jp": "EUC-JP (Japanese)",
    "cp949": "EUC-KR (Korean)",
    "tis-620": "TIS-620 (Thai)",
}
_NAMES = {
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16 (little-endian)",
    "utf-16-be": "UTF-16 (big-endian)",
    **_UNMARKED,
}

_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Of two bytes in UTF-16, the share in which one is 0: at least those of digits.
_LEAST_ZEROS = 0.05
_FEWEST_ZEROS = 4
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
_CONTROL_BEYOND = re.compile("[\x80-\x9f]")
_UNDEFINED = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
# No such byte is part of a character of several bytes, a vertical bar after ASCII.
_BETWEEN_CELLS = re.compile(
    rb"[,;\t\r\n\"]+|(?<![\x80-\xff])\|+|(?<=[\d']) +| +(?=[-+\d'])"
)
_SAMPLE_BYTES = 4096
# Lines in UTF-8 show that the others are damaged, if they are at least this share.
_LEAST_IN_UTF8 = 0.2
# The largest share of characters that do not suit the text around them.
_MOST_UNSUITABLE = 0.1
_MOST_UNDEFINED, _MOST_UNDEFINED_OF_ANY = 0.2, 0.5
# An encoding with this share of the score of the best is possible, too.
_ALSO_POSSIBLE = 0.6
# So few different cells leave the encoding in doubt.
_FEW_CELLS = 5
_SIGNS = frozenset(
    "\u2019\u2018\u201c\u201d\u2013\u2014\u2026\u20ac\u2122\u2022\u2212\xa0"
    "°£µ²³§©®±½¼¾·«»¿¡ºª\xd7÷"
)
# An apostrophe and dashes.
_SIGNS_IN_WORDS = frozenset("\u2019\u2013\u2011")
# The sign of the florin, which is a letter of few languages.
_FLORIN = "\u0192"
# Alphabets that are not Latin begin with the Greek one, and end before ideographs.
_FIRST_GREEK, _FIRST_IDEOGRAPH = 0x370, 0x2E80
_ESCAPED = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True)
class FoundEncoding:
    """The encoding of a file."""

    encoding: Encoding
    is_damaged: bool = False
    doubts: tuple[str, ...] = ()


def name_encoding(encoding: Encoding) -> str:
    """Returns the name of an encoding for people."""
    return _NAMES[encoding]


def find_encoding(source: CsvSource) -> FoundEncoding:
    """Returns the encoding of a file: UTF-8, if all of its bytes are."""
    beginning = source.beginning()
    if beginning.startswith(_UTF_32):
        raise TableError(f"{source.path} is UTF-32 text; save it as UTF-8.")
    if beginning.startswith(_UTF_16):
        return FoundEncoding("utf-16")
    if utf_16 := _find_utf_16(beginning):
        doubt = (
            "The file has no byte order mark, but zero bytes where UTF-16 has them: "
            "save the file as UTF-8 if this is wrong."
        )
        return FoundEncoding(utf_16, doubts=(doubt,))
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with source.open() as file:
            while piece := file.read(source.longest):
                decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return _find_other_encoding(source)
    return FoundEncoding("utf-8")


def _find_utf_16(beginning: bytes) -> Encoding | None:
    """Returns the byte order of UTF-16 without a mark, by the zeros of ASCII."""
    pairs = len(beginning) // 2
    first = beginning[0 : 2 * pairs : 2].count(0)
    second = beginning[1 : 2 * pairs : 2].count(0)
    if min(first, second) or first + second < max(_LEAST_ZEROS * pairs, _FEWEST_ZEROS):
        return None
    encoding = "utf-16-le" if second else "utf-16-be"
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(beginning)
    except UnicodeDecodeError:
        return None
    return encoding if "\n" in text or "\r" in text else None


def _find_other_encoding(source: CsvSource) -> FoundEncoding:
    """Returns the encoding of a file that is not UTF-8, from all of its bytes."""
    sample: dict[bytes, None] = {}
    wrong: list[int] = []
    undefined: list[int] = []
    in_utf8 = size = others = num_undefined = 0
    for number, line in _lines_beyond_ascii(source):
        if _CONTROL.search(line):
            raise _not_utf8(source)
        if _is_utf8(line):
            in_utf8 += 1
            continue
        wrong.append(number)
        others += len(_NOT_ASCII.findall(line))
        if found := len(_UNDEFINED.findall(line)):
            num_undefined += found
            undefined.append(number)
        for cell in _BETWEEN_CELLS.split(line):
            cell = cell.strip(b" '")
            if not cell.isascii() and cell not in sample and size < _SAMPLE_BYTES:
                sample[cell] = None
                size += len(cell)
    if not wrong:
        raise _not_utf8(source)
    if source.beginning().startswith(codecs.BOM_UTF8) or (
        in_utf8 and in_utf8 >= _LEAST_IN_UTF8 * len(wrong)
    ):
        doubt = (
            f"{_count_lines(wrong)} not UTF-8 text; bytes that are not UTF-8 are read "
            f"as {_NAMES['cp1252']}: save the file as UTF-8 if letters are wrong."
        )
        return FoundEncoding("utf-8", True, (doubt,))
    letters, share = b"\n".join(sample), num_undefined / others
    # Many such bytes say that it is another encoding, if any suits the text.
    ranked = _rank(letters, share <= _MOST_UNDEFINED)
    ranked = ranked or _rank(letters, share <= _MOST_UNDEFINED_OF_ANY)
    if not ranked:
        raise _not_utf8(source)
    best = ranked[0][0]
    is_damaged = best == "cp1252" and num_undefined > 0
    doubts = [_describe_choice(ranked, [*sample], is_damaged)]
    if is_damaged:
        count = "1 byte" if num_undefined == 1 else f"{num_undefined} bytes"
        doubts.append(
            f"{_count_lines(undefined)} not wholly {_NAMES['cp1252']}: {count}, which "
            "it leaves undefined, are read as control characters."
        )
    return FoundEncoding(best, is_damaged, tuple(doubts))


def _lines_beyond_ascii(source: CsvSource) -> Iterator[tuple[int, bytes]]:
    with source.open() as file:
        number = 1
        while line := file.readline(source.longest):
            if not line.isascii():
                yield number, line
            number += line.endswith(b"\n")


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _count_lines(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"Line {numbers[0]} is"
    return f"{len(numbers)} lines, the first of them line {numbers[0]}, are"


def _rank(sample: bytes, may_be_damaged: bool) -> list[tuple[Encoding, float]]:
    """Returns the encodings that suit a text with their scores, the best first."""
    scores = _score(sample)
    if "cp1252" not in scores and may_be_damaged:
        defined = _score(_UNDEFINED.sub(b"", sample))
        scores |= {key: score for key, score in defined.items() if key == "cp1252"}
    # Where encodings have the same letters, it is the usual one.
    western = sample.decode("cp1252", errors="replace")
    same = [
        score
        for encoding, score in scores.items()
        if sample.decode(encoding, errors="replace") == western
    ]
    if same:
        scores["cp1252"] = max(same)
    return sorted(scores.items(), key=lambda one: (-one[1], one[0] != "cp1252"))


def _score(sample: bytes) -> dict[Encoding, float]:
    import chardet

    found = chardet.detect_all(
        sample,
        ignore_threshold=True,
        include_encodings=list(_UNMARKED),
        no_match_encoding="cp1252",
        empty_input_encoding="cp1252",
    )
    scores: dict[Encoding, float] = {}
    codecs_found = {codecs.lookup(one).name: one for one in _UNMARKED}
    for each in found:
        name = each["encoding"] and codecs.lookup(each["encoding"]).name
        encoding = codecs_found.get(name or "")
        if encoding is None:
            continue
        try:
            text = sample.decode(encoding)
        except UnicodeDecodeError:
            continue
        if _unsuitable(text) <= _MOST_UNSUITABLE and not _CONTROL_BEYOND.search(text):
            scores[encoding] = max(each["confidence"], scores.get(encoding, 0))
    return scores


def _unsuitable(text: str) -> float:
    """Returns the share of characters beyond ASCII that do not suit their word."""
    triples = zip(f" {text}", text, f"{text[1:]} ", strict=False)
    beyond = [triple for triple in triples if not triple[1].isascii()]
    return sum(_is_unsuitable(*triple) for triple in beyond) / max(len(beyond), 1)


def _is_unsuitable(before: str, character: str, after: str) -> bool:
    category = unicodedata.category(character)
    if category in ("Cc", "Cn", "Co") or character == _FLORIN:
        return True
    if category[0] in "LM":
        around = before + after
        is_inside_word = around.isascii() and before.islower() and after.islower()
        if is_inside_word and ord(character) >= _FIRST_IDEOGRAPH:
            return True
        is_near_latin = any(one.isascii() and one.isalpha() for one in around)
        if is_near_latin and _FIRST_GREEK <= ord(character) < _FIRST_IDEOGRAPH:
            return True
        is_capital_inside = character.isupper() and before.islower()
        return is_capital_inside or (
            character.islower() and before.isupper() and after.isupper()
        )
    if before.isalpha() and after.isalpha():
        # As in Catalan.
        is_dot = character == "·" and before in "lL" and after in "lL"
        return character not in _SIGNS_IN_WORDS and not is_dot
    return ord(character) < _FIRST_IDEOGRAPH and character not in _SIGNS


def _describe_choice(
    ranked: list[tuple[Encoding, float]], cells: list[bytes], is_damaged: bool
) -> str:
    (best, score), *rest = ranked
    errors = AS_WINDOWS_1252 if is_damaged else "strict"
    read = [cell.decode(best, errors).strip() for cell in cells]
    least = 0.0 if len(cells) <= _FEW_CELLS else _ALSO_POSSIBLE * score
    found = (
        (other, theirs, ours)
        for other, its in rest
        if its >= least
        for cell, ours in zip(cells, read, strict=True)
        if (theirs := cell.decode(other, errors="replace").strip()) != ours
    )
    other, theirs, ours = next(found, ("", "", ""))
    advice = "if letters are wrong, save the file as UTF-8."
    text = (
        "The file does not state its encoding, which was chosen by its letters, as in "
        f"{read[0]!r}"
    )
    if not other:
        return f"{text}: {advice}"
    return (
        f"{text}. {_NAMES[other]} is possible, too, which has {theirs!r} where "
        f"{ours!r} is read: {advice}"
    )


def check_encoding(source: CsvSource, encoding: Encoding, *, is_damaged: bool) -> None:
    """Raises a `TableError` that names the first line in another encoding."""
    lines = source.lines(encoding, errors="surrogateescape", is_damaged=is_damaged)
    number, fault = 0, ""
    try:
        for line in lines:
            number += 1
            if _ESCAPED.search(line):
                fault = "cannot be decoded"
            elif "\0" in line:
                fault = "has a NUL character, as UTF-16 does"
            if fault:
                break
    except UnicodeDecodeError:
        # Half a character of UTF-16 at the end of the file.
        number, fault = number + 1, "cannot be decoded"
    if fault:
        raise TableError(
            f"{source.path} is not {name_encoding(encoding)} text: line {number} "
            f"{fault}; save it as UTF-8."
        )


def _not_utf8(source: CsvSource) -> TableError:
    try:
        check_encoding(source, "utf-8", is_damaged=False)
    except TableError as error:
        return error
    return TableError(f"{source.path} is not UTF-8 text; save it as UTF-8.")
