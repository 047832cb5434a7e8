"""Runs the command line: ``python -m kubeproof run``."""

import subprocess
import sys

from ._binary import find_binary

if __name__ == "__main__":
    sys.exit(subprocess.run([find_binary(), *sys.argv[1:]], check=False).returncode)
