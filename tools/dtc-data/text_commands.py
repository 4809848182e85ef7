"""dtc-data encode and decode: text to the prompts of dtc-run, and what it generates to text."""

import array
import json
import pathlib
import sys

import documents
import token_file
from problem import Problem
from vocabulary import Vocabulary


def add_encode_arguments(parser):
    parser.add_argument("text", nargs="?", help="the text (default: standard input)")
    parser.add_argument("--tokenizer", required=True, metavar="FILE", help="a tokenizer.json, or a folder that has one")
    parser.add_argument("-o", "--output", required=True, metavar="FILE",
                        help="for dtc-run generate --prompt; *.bin: 16 bits a token; *.u32: 32 bits")
    parser.add_argument("--begin", metavar="TOKEN", help="a token before the text")


def encode(options, stop):
    del stop
    vocabulary = Vocabulary(options.tokenizer)
    code, _ = token_file.width_of(options.output, vocabulary)
    text = options.text
    if text is None:
        text = documents.decode(sys.stdin.buffer.read(), "standard input", "the text")
    begin = [] if options.begin is None else [vocabulary.find("--begin", options.begin)]
    tokens = begin + vocabulary.encode([text])[0]
    if not tokens:
        raise Problem("the text has no tokens")
    token_file.write_renamed(options.output, token_file.little_endian(array.array(code, tokens)).tobytes())
    print(f"{options.output}: {len(tokens)} tokens")


def add_decode_arguments(parser):
    parser.add_argument("file", metavar="FILE", help="what dtc-run --tokens has written, or a file of tokens (*.bin, *.u32)")
    parser.add_argument("--tokenizer", required=True, metavar="FILE", help="a tokenizer.json, or a folder that has one")


def checked(tokens, vocabulary, place):
    for token in tokens:
        if not isinstance(token, int) or not 0 <= token < vocabulary.size:
            raise Problem(f"{place}: {token} is no token of {vocabulary.path}, which has {vocabulary.size}")
    return tokens


def decode(options, stop):
    del stop
    vocabulary = Vocabulary(options.tokenizer)
    if pathlib.Path(options.file).suffix in token_file.WIDTHS:
        try:
            tokens = token_file.read_tokens(options.file)
        except OSError as error:
            raise Problem(f"{options.file}: {error.strerror}") from error
        print(vocabulary.decode(checked(tokens, vocabulary, options.file)))
        return
    needs_json = "dtc-run --tokens writes JSON lines, and files of tokens have names with .bin or .u32"
    for document in documents.read_documents(options.file, needs_json=needs_json):
        place = document.place
        fields = {name: document.text.get(name) for name in FIELDS}
        for name, tokens in fields.items():
            if not isinstance(tokens, list):
                raise Problem(f'{place}: there is no list "{name}"')
            checked(tokens, vocabulary, place)
        print(json.dumps({name: vocabulary.decode(tokens) for name, tokens in fields.items()}, ensure_ascii=False))


# The lists of a line of dtc-run --tokens.
FIELDS = ("prompt", "tokens")
