"""Documents in files: a text file is one, a file of JSON has one in each line or in each element of an array."""

import dataclasses
import glob
import gzip
import itertools
import json
import os
import re
import zlib

from problem import Problem

JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")
# The most bytes of the first line that are read to find out the format of a file.
FIRST_LINE_BYTES = 64 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Files of other programs, by their first bytes: their format, and what to do.
FOREIGN = (
    (b"version https://git-lfs.github.com/spec/", "a pointer of Git LFS and not the file that it stands for; fetch that: git lfs "
                                                  "pull, or download it"),
    (b"\x28\xb5\x2f\xfd", "compressed (zstd); unpack it: zstd -dk FILE"),
    (b"\xfd7zXZ\0", "compressed (xz); unpack it: xz -dk FILE"),
    (b"BZh91AY&SY", "compressed (bzip2); unpack it: bzip2 -dk FILE"),
    (b"PK\3\4", "compressed (zip); unpack it: unzip FILE"),
    (b"PAR1", "a Parquet file; write its texts as JSON lines, as pandas.DataFrame.to_json(FILE, orient='records', lines=True) does"),
    (b"ARROW1\0\0", "an Arrow file; write its texts as JSON lines, as datasets.Dataset.to_json(FILE) does"),
    (b"\x93NUMPY", "a NumPy file; it holds no text"),
)


@dataclasses.dataclass
class Document:
    """text, or with no field asked for, the object of a line of JSON; `place` says where it is, for messages. `end` is the
    position in its file after it, in bytes of what is stored there uncompressed or in elements of an array, `line` the number
    of lines or elements up to there, and `raw` the position in bytes of the file, for progress."""
    text: object
    place: str
    end: int
    line: int
    raw: int


def find_files(patterns):
    """The files that names and patterns of a shell stand for, sorted, each once."""
    files = []
    for pattern in patterns:
        found = [pattern] if os.path.exists(pattern) else glob.glob(pattern, recursive=True)
        found = [file for file in found if not os.path.isdir(file)]
        if not found:
            raise Problem(f"{pattern}: there is no such file")
        files += found
    twice = sorted({file for file in files if files.count(file) > 1})
    if twice:
        raise Problem(f"{twice[0]} is given twice; each file is taken once")
    return sorted(files)


def open_file(path):
    """A file, uncompressed where its first bytes are those of gzip."""
    try:
        file = open(path, "rb")
        first = file.read(64)
        file.seek(0)
    except OSError as error:
        raise Problem(f"{path}: {error.strerror}") from error
    if first.startswith(b"\x1f\x8b"):
        file.close()
        return gzip.open(path, "rb")
    for magic, description in FOREIGN:
        if first.startswith(magic):
            file.close()
            raise Problem(f"{path}: is {description}")
    if path.lower().endswith(".gz") and first:
        file.close()
        raise Problem(f"{path}: has the name of a compressed file (.gz) and not its first bytes")
    return file


def raw_position(file):
    return file.fileobj.tell() if isinstance(file, gzip.GzipFile) else file.tell()


def decode(data, path, place):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem(f"{path}: {place}: byte {error.start} of it is no UTF-8 ({error.reason}); convert it first") from error


def parse_json(text, place):
    """Any JSON text, or an error that names the place."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise Problem(f"{place}: it is nested too deep") from error
    except ValueError as error:
        raise Problem(f"{place}: it is no JSON: {error}") from error


def replace_surrogates(text):
    """U+FFFD in place of what is half of a character: JSON may have it, as where a text was cut in the middle of an emoji."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def is_json_object(line):
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def find_form(path, needs_json):
    """How the documents lie in a file: "text", "lines" of JSON, or "values", one JSON value: an array of objects, or one object.
    A file is JSON if its name says so, or if its first line is an object. `needs_json` says why it has to be, or is None."""
    name = path.lower().removesuffix(".gz")
    with open_file(path) as file:
        line = first_line(file)
    begin = line[:1]
    if not line: # the file is empty
        return "lines" if needs_json or name.endswith(JSON_SUFFIXES) else "text"
    if name.endswith((".jsonl", ".ndjson")):
        return "lines"
    if not needs_json and not name.endswith(".json"):
        return "lines" if begin == b"{" and is_json_object(line) else "text"
    if begin == b"[":
        return "values"
    if begin == b"{":
        # An object over several lines is one value.
        return "lines" if len(line) == FIRST_LINE_BYTES or is_json_object(line) else "values"
    if needs_json:
        raise Problem(f"{path}: {needs_json}, and the file is none: it begins with neither {{ nor [; expected JSON lines or an "
                      "array of objects")
    return "text"


def first_line(file):
    """The first line that is not blank, without blanks before it."""
    line = file.readline(FIRST_LINE_BYTES).removeprefix(BYTE_ORDER_MARK)
    while line and not line.strip():
        line = file.readline(FIRST_LINE_BYTES)
    return line.lstrip()


def read_documents(path, start=0, line=0, field=None, needs_json=None):
    """The documents of a file from a position on, after that many lines. `field` names the text in an object of JSON; None
    gives objects. Empty lines are no documents. See find_form for needs_json."""
    try:
        form = find_form(path, needs_json)
        if form == "values":
            yield from read_values(path, start, field)
            return
        with open_file(path) as file:
            file.seek(start)
            if start == 0:
                start = skip_byte_order_mark(file)
            if form == "text":
                text = decode(file.read(), path, "the text")
                if "\0" in text:
                    raise Problem(f"{path}: the text: byte {len(text.partition(chr(0))[0].encode())} of it is 0, which no text "
                                  "has; the file is of another kind, or packed (tar)")
                if text:
                    yield Document(text, path, file.tell(), 1, raw_position(file))
                return
            end = start
            for number, data in enumerate(file, line + 1):
                end += len(data)
                if data.strip():
                    place = f"line {number}"
                    value = parse_json(decode(data, path, place), f"{path}: {place}")
                    yield make_document(value, f"{path}: {place}", field, end, number, raw_position(file))
    except (OSError, EOFError, zlib.error) as error:
        raise Problem(f"{path}: {error}") from error


def skip_byte_order_mark(file):
    if file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK:
        return len(BYTE_ORDER_MARK)
    file.seek(0)
    return 0


def read_values(path, start, field):
    """The elements of an array from one on, or the only object of a file."""
    with open_file(path) as file:
        data = file.read().removeprefix(BYTE_ORDER_MARK)
    values = parse_json(decode(data, path, "the text"), path)
    is_array = isinstance(values, list)
    values = values if is_array else [values]
    size = os.path.getsize(path)
    for number in range(start, len(values)):
        place = f"{path}: element {number}" if is_array else path
        yield make_document(values[number], place, field, number + 1, number + 1, size * (number + 1) // len(values))


def make_document(value, place, field, end, line, raw):
    if not isinstance(value, dict):
        raise Problem(f"{place}: expected an object such as {{\"text\": ...}}")
    return Document(value if field is None else text_of(value, field, place), place, end, line, raw)


def quote(text):
    """A text from a file in a message: short, and on one line."""
    text = text if len(text) <= 100 else text[:80] + "..."
    return json.dumps(text, ensure_ascii=not text.isprintable())


def names_of(value):
    """The first fields of an object, for messages."""
    names = [quote(name)[1:-1] for name in itertools.islice(value, 21)]
    return ", ".join(names[:20] + ["..."] * (len(names) > 20)) or "none"


def field_of(value, field, place):
    """What is in a field of an object."""
    if field not in value:
        raise Problem(f'{place}: there is no field "{field}"; its fields are {names_of(value)}')
    return value[field]


def text_of(value, field, place):
    """The text in a field of an object."""
    text = field_of(value, field, place)
    if not isinstance(text, str):
        raise Problem(f'{place}: "{field}" is no text')
    return replace_surrogates(text)
