"""How a build compiles each source, also of sources that it compiles together."""

import json
import pathlib
import re


def read_entries(folder):
    """The entries of the compilation database in a build folder, by the path of the source."""
    entries = {}
    for entry in json.loads((pathlib.Path(folder) / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        sources = [str(file)]
        if file.parent.name == "Unity":  # CMake's file, which includes sources
            sources = re.findall(r'^#include "(.*)"$', file.read_text(), re.MULTILINE)
        for source in sources:
            entries[source] = {**entry, "file": source, "command": entry["command"].replace(str(file), source)}
    return entries
