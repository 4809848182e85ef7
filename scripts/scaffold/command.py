"""The main function of both scripts."""

import argparse
import pathlib
import sys

from scaffold.changes import ScaffoldError


def run(make, description, next_steps, arguments):
    """Makes a skeleton and says what was made. `arguments` are (name, settings) for the parser."""
    parser = argparse.ArgumentParser(description=description)
    for name, settings in arguments:
        parser.add_argument(name, **settings)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2],
                        help="the tree to add to (default: the one of this script)")
    values = vars(parser.parse_args())
    try:
        changes = make(values.pop("root"), **values)
        changes.write()
    except (ScaffoldError, OSError, UnicodeDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(changes.summary() + next_steps, end="")
    return 0
