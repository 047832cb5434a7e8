"""Finds the binary."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path


class BinaryNotFoundError(FileNotFoundError):
    """The binary is neither in the scripts of this package nor in PATH."""


def find_binary() -> Path:
    """Return the path of the binary.

    ``KUBEPROOF_BINARY`` names another binary than that of this package.
    """
    named = os.environ.get("KUBEPROOF_BINARY")
    if named:
        return Path(named)
    name = "kubeproof.exe" if sys.platform == "win32" else "kubeproof"
    user_scheme = sysconfig.get_preferred_scheme("user") if _has_schemes() else None
    directories = [sysconfig.get_path("scripts")]
    if user_scheme:
        directories.append(sysconfig.get_path("scripts", user_scheme))
    for directory in directories:
        path = Path(directory) / name
        if path.is_file():
            return path
    found = shutil.which(name)
    if found:
        return Path(found)
    raise BinaryNotFoundError(
        f"expected {name} in {' or '.join(directories)} or in PATH; install kubeproof from a wheel"
    )


def _has_schemes() -> bool:
    # Python 3.9 has no preferred schemes.
    return sys.version_info >= (3, 10)
