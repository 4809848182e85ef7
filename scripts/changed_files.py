"""What has changed in the working tree since the last commit. The check-* scripts share it."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def git(*arguments):
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True).stdout


def add_arguments(parser):
    """The files that a script looks at: those named, all, or by default those that have changed."""
    parser.add_argument("--all", action="store_true", help="look at all files, not at changes alone")
    parser.add_argument("--newest", type=int, metavar="N", help="look at the N files that the latest commits have changed")
    parser.add_argument("files", nargs="*", help="look at these files alone (default: what has changed)")


def newest_files(count, suffixes):
    """The files of the tree that the latest commits have changed, at most `count`."""
    paths = dict.fromkeys(git("log", "--no-merges", "--name-only", "--format=").splitlines())
    return [path for path in paths if path.endswith(suffixes) and (ROOT / path).is_file()][:count]


def selected_files(options, suffixes):
    """The paths from the root of the files to look at, in order."""
    if options.files:
        paths = [str(pathlib.Path(file).resolve().relative_to(ROOT)) for file in options.files]
    elif options.newest is not None:
        paths = newest_files(options.newest, suffixes)
    elif options.all:
        paths = git("ls-files", "-z").split("\0")
    else:
        paths = (git("diff", "-z", "--name-only", "HEAD") + git("ls-files", "-z", "--others", "--exclude-standard")).split("\0")
    return sorted({path for path in paths if path.endswith(suffixes) and (ROOT / path).is_file()})


def changed_lines(path):
    """The numbers of the lines that are new in a file; None if the whole file is."""
    if not git("ls-files", "--", path):
        return None
    hunks = re.finditer(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", git("diff", "-U0", "HEAD", "--", path), re.MULTILINE)
    return {line for hunk in hunks for line in range(int(hunk[1]), int(hunk[1]) + int(hunk[2] or 1))}
