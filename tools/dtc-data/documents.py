"""Documents in files: a text file is one, a file of JSON lines has one on each line."""

import dataclasses
import glob
import gzip
import json
import os

from problem import Problem

JSON_SUFFIXES = (".jsonl", ".ndjson")


@dataclasses.dataclass
class Document:
    """text, or with no field asked for, the object of a line of JSON; `end` is the position in its file after it, in bytes
    of what is stored there uncompressed, and `raw` the same in bytes of the file, for progress."""
    text: object
    end: int
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


def is_json_lines(path):
    return path.removesuffix(".gz").endswith(JSON_SUFFIXES)


def open_file(path):
    try:
        return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")
    except OSError as error:
        raise Problem(f"{path}: {error.strerror}") from error


def raw_position(file):
    return file.fileobj.tell() if isinstance(file, gzip.GzipFile) else file.tell()


def decode(data, path, place):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem(f"{path}: {place}: byte {error.start} of it is no UTF-8 ({error.reason}); convert the file "
                      "first") from error


def read_documents(path, start=0, field=None):
    """The documents of a file from a position on. `field` names the text in an object of JSON lines; None gives objects.
    Empty lines are no documents."""
    with open_file(path) as file:
        try:
            file.seek(start)
            if not is_json_lines(path):
                text = decode(file.read(), path, "the text")
                if text:
                    yield Document(text, file.tell(), raw_position(file))
                return
            end = start
            for line in file:
                begin, end = end, end + len(line)
                if line.strip():
                    yield Document(read_line(line, path, begin, field), end, raw_position(file))
        except (OSError, EOFError) as error:
            raise Problem(f"{path}: {error}") from error


def read_line(line, path, begin, field):
    place = f"the line at byte {begin}"
    try:
        value = json.loads(decode(line, path, place))
    except ValueError as error:
        raise Problem(f"{path}: {place}: it is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise Problem(f"{path}: {place}: expected an object such as {{\"text\": ...}}")
    return value if field is None else text_of(value, field, f"{path}: {place}")


def text_of(value, field, place):
    """The text in a field of an object."""
    if field not in value:
        raise Problem(f'{place}: there is no field "{field}"; its fields are {", ".join(value) or "none"}')
    if not isinstance(value[field], str):
        raise Problem(f'{place}: "{field}" is no text')
    return value[field]
