"""A throw-away virtual environment with the packages of a requirements file, kept in build/environments until that file changes. Usage, to make
one ahead of time: pip_environment.py REQUIREMENTS_FILE"""

import hashlib
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2] / "build/environments"


class NotInstalled(Exception):
    """Why there is no such environment."""


def python_of(requirements, install):
    """The interpreter of the environment. Without one it is made if `install` is true; NotInstalled says why there is none."""
    requirements = pathlib.Path(requirements)
    digest = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    directory = ROOT / f"{requirements.stem}-{digest}"
    python = directory / "bin/python"
    if (directory / "complete").exists():
        return str(python)
    if not install:
        raise NotInstalled(f"the packages of {requirements.name} are not installed (make acceptance installs them)")
    shutil.rmtree(directory, ignore_errors=True)
    for command in ([sys.executable, "-m", "venv", str(directory)], [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check",
                                                                     "--retries", "1", "-r", str(requirements)]):
        made = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1500)
        if made.returncode != 0:
            shutil.rmtree(directory, ignore_errors=True)
            raise NotInstalled(f"{' '.join(command[:4])} ...: {made.stdout.strip()[-500:]}")
    (directory / "complete").touch()
    return str(python)


if __name__ == "__main__":
    print(python_of(sys.argv[1], install=True))
