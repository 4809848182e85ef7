"""dtc-data tokens: documents to a file of tokens."""

import os

import documents
import token_file
from problem import Problem
from progress import Progress
from vocabulary import Vocabulary

# The number of bytes up to which documents are encoded together.
BATCH_BYTES = 4 << 20
# The number of bytes of text after which progress is saved again.
SAVE_BYTES = 256 << 20


def add_arguments(parser):
    parser.add_argument("files", nargs="+", metavar="FILE",
                        help="text (a file is a document), JSON lines (a line is one) or a JSON array (an element is one), each "
                             "also compressed by gzip; or quoted patterns of a shell")
    parser.add_argument("--tokenizer", required=True, metavar="FILE", help="a tokenizer.json, or a folder that has one")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="*.bin: 16 bits a token; *.u32: 32 bits")
    parser.add_argument("--field", help="the field of JSON objects that has the text (default: text)")
    parser.add_argument("--end", metavar="TOKEN",
                        help="the token after each document, or none (default: eos_token of tokenizer_config.json)")
    parser.add_argument("--begin", metavar="TOKEN", help="a token before each document")
    parser.add_argument("--threads", type=int, metavar="N", help="threads that encode (default: one a core)")
    parser.add_argument("--restart", action="store_true", help="begin again where an interrupted command has left its files")


class Tokenizing:
    def __init__(self, options, stop):
        self.stop = stop
        self.files = documents.find_files(options.files)
        self.field = options.field or "text"
        self.needs_json = None if options.field is None else "--field names a field of JSON"
        self.vocabulary = Vocabulary(options.tokenizer, options.threads)
        self.before = [] if options.begin is None else [self.vocabulary.find("--begin", options.begin)]
        end = self.vocabulary.end(options.end)
        self.after = [] if end is None else [end]
        sizes = [[file, os.path.getsize(file)] for file in self.files]
        request = {"input": sizes, "field": self.field, "tokenizer": self.vocabulary.checksum, "begin": self.before,
                   "end": self.after}
        self.writer = token_file.TokenWriter(options.output, self.vocabulary, request, options.restart)
        if self.writer.is_resumed:
            print(f"going on after {self.writer.documents} documents, {self.writer.tokens} tokens", flush=True)
        self.progress = Progress(sum(size for _, size in sizes), self.writer.place["done_bytes"])
        self.saved = self.read = 0 # bytes of text
        self.batch = []

    def encode_batch(self):
        for tokens in self.vocabulary.encode([document.text for document in self.batch]):
            self.writer.add(self.before + tokens + self.after)
        self.batch = []

    def save(self, place):
        self.writer.save(place)
        self.saved = self.read

    def encode_file(self, number, start, line, raw_before):
        """start, line: what was read of it before; raw_before: bytes of the files before it."""
        size = 0
        place = dict(self.writer.place)
        for document in documents.read_documents(self.files[number], start, line, self.field, self.needs_json):
            self.batch.append(document)
            size += len(document.text)
            self.read += len(document.text)
            place = {"file": number, "position": document.end, "line": document.line, "done_bytes": raw_before + document.raw}
            if size >= BATCH_BYTES:
                self.encode_batch()
                size = 0
                self.progress.show(place["done_bytes"], f"{self.writer.tokens} tokens")
                if self.stop.is_set():
                    break
                if self.read - self.saved >= SAVE_BYTES:
                    self.save(place)
        self.encode_batch()
        return place

    def run(self):
        raw_before = sum(os.path.getsize(file) for file in self.files[:self.writer.place["file"]])
        for number in range(self.writer.place["file"], len(self.files)):
            begun = number == self.writer.place["file"]
            start, line = (self.writer.place[key] if begun else 0 for key in ("position", "line"))
            place = self.encode_file(number, start, line, raw_before)
            if self.stop.is_set():
                self.save(place)
                self.progress.close()
                raise Problem(f"interrupted after {self.writer.documents} documents; the same command goes on from there")
            raw_before += os.path.getsize(self.files[number])
        self.progress.close()
        self.writer.finish()


def run(options, stop):
    work = Tokenizing(options, stop)
    try:
        work.run()
    except BaseException:
        work.progress.close()
        work.writer.abandon()
        raise
    print(f"{options.output}: {work.writer.tokens} tokens of {work.writer.documents} documents; the tokenizer has "
          f"{work.vocabulary.size}")
