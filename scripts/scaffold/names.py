"""Names in the forms that the tree uses."""

import re

from scaffold.changes import ScaffoldError


def check_name(name, separator, example):
    """Refuses what is not lower-case words joined by the separator."""
    if not re.fullmatch(rf"[a-z][a-z0-9]*({separator}[a-z][a-z0-9]*)*", name):
        raise ScaffoldError(f'"{name}" is not lower-case words joined by "{separator}", such as {example}')


def pascal_case(name):
    """fold-casts and fold_casts: FoldCasts."""
    return "".join(word.capitalize() for word in re.split("[-_]", name))


def file_header(file, title):
    """The first lines of every C++ file; the first one is 80 columns wide."""
    begin, end = f"//===- {file} - {title} ", "===//"
    return (begin + "-" * (80 - len(begin) - len(end)) + end + "\n//\n"
            "// Part of dtc, under the Apache License v2.0. See LICENSE.\n//\n//===" + "-" * 70 + "===//\n")
