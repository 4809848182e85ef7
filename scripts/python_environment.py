"""Makes virtual environments for scripts that compare with PyTorch and JAX or run the examples of Python."""

import pathlib
import shutil
import subprocess


def make_environment(folder, wanted, program):
    """Makes the virtual environment `folder` by the Python `program` and installs a file of requirements in it, unless that was
    done before. One that was made in another way is left as it is."""
    folder, wanted = pathlib.Path(folder), pathlib.Path(wanted)
    installed = folder / "installed.txt"
    if (folder / "bin" / "python").exists() and not installed.exists():
        return
    if installed.exists() and installed.read_text() == wanted.read_text():
        return
    folder.mkdir(parents=True, exist_ok=True)
    installed.write_text("")  # where the installation fails or is interrupted, the next call installs again
    subprocess.run([program, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "pip", "install", "--quiet", "-r", wanted], check=True)
    shutil.copy(wanted, installed)
