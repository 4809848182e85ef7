"""Changes of the tree that are computed first and written together, or not at all."""

import os
import pathlib
import shutil
import subprocess


class ScaffoldError(Exception):
    """Why a skeleton cannot be made, in one line."""


class Changes:
    """New texts of files. Nothing is written before `write`."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.texts = {}  # by path from the root
        self.created = set()

    def read(self, path):
        """The text of a file with the changes so far."""
        if path not in self.texts:
            try:
                return (self.root / path).read_text()
            except OSError as error:
                raise ScaffoldError(f"{path}: {error.strerror}; the skeleton adds to it") from error
        return self.texts[path]

    def create(self, path, text):
        if os.path.lexists(self.root / path):
            raise ScaffoldError(f"{path} exists; choose another name")
        self.texts[path] = text
        self.created.add(path)

    def replace(self, path, text):
        """Gives an existing file another text."""
        if text != self.read(path):
            self.texts[path] = text

    def insert(self, path, match, text, after=True):
        """Puts text after a match of a regular expression in the file's text, or before it."""
        if match is None:
            raise ScaffoldError(f"{path} does not have the place that the skeleton adds to")
        position = match.end() if after else match.start()
        old = self.read(path)
        self.texts[path] = old[:position] + text + old[position:]

    def format(self):
        """Formats C++ with clang-format, where it is installed."""
        program = shutil.which("clang-format")
        for path, text in self.texts.items():
            if program and path.endswith((".cpp", ".h", ".cu")):
                result = subprocess.run([program, f"--assume-filename={self.root / path}"], input=text, text=True,
                                        capture_output=True)
                if result.returncode == 0:
                    self.texts[path] = result.stdout

    def write(self):
        """Writes all files. Where one cannot be written, the others are as they were."""
        written = []  # paths with their former texts
        try:
            for path, text in self.texts.items():
                target = self.root / path
                if path in self.created:
                    with open(target, "x") as file:  # never over a file that has come since
                        written.append((target, None))
                        file.write(text)
                else:
                    before = target.read_text()
                    written.append((target, before))
                    target.write_text(text)
        except OSError as error:
            for target, before in reversed(written):
                if before is None:
                    target.unlink()
                else:
                    target.write_text(before)
            raise ScaffoldError(f"{path}: {error.strerror}; nothing was changed") from error

    def summary(self):
        """The files, each as a line."""
        return "".join(f"  {'new' if path in self.created else 'changed':<9}{path}\n" for path in sorted(self.texts))
