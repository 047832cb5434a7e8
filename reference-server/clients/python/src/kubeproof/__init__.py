"""Start the reference server of kubeproof, an API server in memory, in tests.

>>> import kubeproof
>>> with kubeproof.server() as s:
...     s.url.startswith("https://127.0.0.1:")
True
"""

from ._binary import BinaryNotFoundError, find_binary
from ._server import Server, StartError, server

__all__ = ["BinaryNotFoundError", "Server", "StartError", "find_binary", "server"]
