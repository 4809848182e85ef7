"""dtc-data: text and images to the files that dtc-run trains on, and text back."""

import argparse
import os
import signal
import sys
import threading

import answers_command
import documents
import images_command
import text_commands
import tokenize_command
from problem import Problem

COMMANDS = {
    "tokens": ("make a file of tokens of documents", tokenize_command.add_arguments, tokenize_command.run),
    "answers": ("make samples of prompts and answers; the answers alone count in the loss",
                answers_command.add_arguments, answers_command.run),
    "images": ("make samples of folders of images, one folder for each class", images_command.add_arguments,
               images_command.run),
    "encode": ("make a prompt for dtc-run of a text", text_commands.add_encode_arguments, text_commands.encode),
    "decode": ("print what dtc-run has generated, or a file of tokens, as text", text_commands.add_decode_arguments,
               text_commands.decode),
}


def parse(arguments):
    parser = argparse.ArgumentParser(prog="dtc-data", description=__doc__.partition(": ")[2], allow_abbrev=False)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (summary, add_arguments, _) in COMMANDS.items():
        add_arguments(subparsers.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".",
                                            allow_abbrev=False))
    options = parser.parse_args(arguments)
    if getattr(options, "threads", None) is not None and options.threads < 1:
        parser.error(f"--threads is {options.threads}, expected at least 1")
    return options


def check_texts(options):
    """Whether what is no name of a file is text."""
    for name in ("text", "prompt", "answer", "begin", "end", "field", "messages"):
        if isinstance(getattr(options, name, None), str):
            documents.decode(os.fsencode(getattr(options, name)), "the command line", "the text" if name == "text" else f"--{name}")


def main():
    for stream in (sys.stdout, sys.stderr): # a name of a file may be no text
        stream.reconfigure(errors="backslashreplace")
    options = parse(sys.argv[1:])
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        # A command that writes as it reads completes its current work; the others end at once.
        signal.signal(number, (lambda *_: stop.set()) if options.command in ("tokens", "images") else signal.SIG_DFL)
    try:
        check_texts(options)
        COMMANDS[options.command][2](options, stop)
        sys.stdout.flush()
    except Problem as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
