"""Files of tokens as dtc-run --data reads them, written so that an interrupted command can go on."""

import array
import json
import os
import pathlib
import sys

from problem import Problem

# By the end of a file's name: the code of array.array for a token, and its bytes.
WIDTHS = {".bin": ("H", 2), ".u32": ("I", 4)}


def little_endian(numbers):
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def width_of(path, vocabulary):
    """The code and the bytes of a token in the file; an error where its numbers are too small for the vocabulary."""
    suffix = pathlib.Path(path).suffix
    if suffix not in WIDTHS:
        raise Problem(f"{path}: the name of a file of tokens ends with .bin (16 bits each) or .u32 (32 bits each)")
    if suffix == ".bin" and vocabulary is not None and vocabulary.size > 1 << 16:
        raise Problem(f"{path}: {vocabulary.path} has {vocabulary.size} tokens, and 16 bits tell 65536 apart; name the file "
                      f"{pathlib.Path(path).with_suffix('.u32')}")
    return WIDTHS[suffix]


def read_tokens(path):
    """All tokens of a file."""
    code, width = width_of(path, None)
    data = pathlib.Path(path).read_bytes()
    if len(data) % width:
        raise Problem(f"{path}: its {len(data)} bytes are not a multiple of the {width} of a token")
    return little_endian(array.array(code, data)).tolist()


def write_renamed(path, data):
    """Writes a file beside its place, then renames it."""
    beside = pathlib.Path(f"{path}.partial")
    try:
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def documents_path(path):
    return pathlib.Path(f"{path}.documents")


class TokenWriter:
    """Writes a file of tokens, and beside it NAME.documents: of each document the position of its first token, and at the end
    the number of all tokens, unsigned, 64 bits, little-endian.

    Both grow as NAME.partial and NAME.documents.partial, and NAME.state says how far all is on the disk and what was read by
    then, so that the same command goes on from there; `request` is what has to be the same."""

    def __init__(self, path, vocabulary, request, restart):
        self.path = pathlib.Path(path)
        self.code, self.width = width_of(path, vocabulary)
        self.request = request
        self.state_path = pathlib.Path(f"{path}.state")
        self.tokens, self.documents, self.place = 0, 0, {"file": 0, "position": 0, "line": 0, "done_bytes": 0}
        if restart:
            self.state_path.unlink(missing_ok=True)
        state = self.read_state()
        self.is_resumed = state is not None
        mode = "r+b" if self.is_resumed else "w+b"
        self.files = []
        try:
            for name in (path, documents_path(path)):
                self.files.append(open(f"{name}.partial", mode))
        except OSError as error:
            self.abandon()
            raise Problem(f"{error.filename}: {error.strerror}") from error
        self.token_file, self.document_file = self.files
        if state is not None:
            self.tokens, self.documents, self.place = state["tokens"], state["documents"], state["place"]
            self.cut(self.token_file, self.width * self.tokens)
            self.cut(self.document_file, 8 * self.documents)

    def read_state(self):
        try:
            state = json.loads(self.state_path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise Problem(f"{self.state_path}: {error}; --restart begins again") from error
        request = state.get("request") if isinstance(state, dict) else None
        for key, value in self.request.items() if isinstance(request, dict) else ():
            if request.get(key) != value:
                raise Problem(f"{self.state_path} is of a command that was interrupted and had another {key}; give that "
                              "again to go on, or --restart to begin again")
        numbers = [state, state.get("place")] if isinstance(request, dict) else []
        if not numbers or any(not isinstance(each, dict) or not isinstance(each.get(key), int) for each, keys in zip(
                numbers, (("tokens", "documents"), self.place)) for key in keys):
            raise Problem(f"{self.state_path} is of another version of dtc-data, or damaged; --restart begins again")
        return state

    def abandon(self):
        """After an error: without a state there is nothing to go on from, and no file stays."""
        for file in self.files:
            file.close()
            if not self.state_path.exists():
                pathlib.Path(file.name).unlink(missing_ok=True)

    @staticmethod
    def cut(file, size):
        """Drops what was written after the state."""
        file.seek(0, os.SEEK_END)
        if file.tell() < size:
            raise Problem(f"{file.name} has {file.tell()} bytes, and {size} had been written; --restart begins again")
        file.truncate(size)
        file.seek(size)

    def add(self, tokens):
        """A document."""
        self.document_file.write(self.tokens.to_bytes(8, "little"))
        self.token_file.write(little_endian(array.array(self.code, tokens)).tobytes())
        self.tokens += len(tokens)
        self.documents += 1

    def save(self, place):
        """Brings all to the disk and notes how much of the input that was."""
        for file in self.files:
            file.flush()
            os.fsync(file.fileno())
        self.place = place
        state = {"request": self.request, "tokens": self.tokens, "documents": self.documents, "place": place}
        write_renamed(self.state_path, json.dumps(state, indent=1).encode())

    def finish(self):
        if not self.tokens:
            raise Problem("the input has no tokens")
        self.document_file.write(self.tokens.to_bytes(8, "little"))
        for file in self.files:
            file.flush()
            os.fsync(file.fileno())
            file.close()
        os.replace(f"{documents_path(self.path)}.partial", documents_path(self.path))
        os.replace(f"{self.path}.partial", self.path)
        self.state_path.unlink(missing_ok=True)
