"""Adds the binary to the wheel.

KUBEPROOF_BINARY is the path of the binary. KUBEPROOF_PLATFORM is the platform of the wheel, such as
``manylinux2014_x86_64.musllinux_1_1_x86_64`` for a static binary. Its default is this machine.
"""

import os
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BinaryHook(BuildHookInterface):  # type: ignore[type-arg]
    """Installs the binary as a script, and names the platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        binary = os.environ.get("KUBEPROOF_BINARY", "")
        if not Path(binary).is_file():
            raise FileNotFoundError(
                f"KUBEPROOF_BINARY is {binary!r}; expected the path of the binary kubeproof"
            )
        default = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        platform = os.environ.get("KUBEPROOF_PLATFORM", default)
        suffix = ".exe" if platform.startswith("win") else ""
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["shared_scripts"] = {binary: f"kubeproof{suffix}"}
