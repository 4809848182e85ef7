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
    subprocess.run([program, "-m", "venv", folder], check=True)
    try:
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", "-r", wanted], check=True)
    except subprocess.CalledProcessError:
        installed.write_text("")  # the next call installs again
        raise
    shutil.copy(wanted, installed)
