"""Starts and stops the reference server."""

import atexit
import base64
import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Optional, Union

from ._binary import find_binary

StrPath = Union[str, "os.PathLike[str]"]

_READY = "listening on "
_STOP_TIMEOUT = 5.0


class StartError(RuntimeError):
    """The server did not start. The message contains its output."""


class Server:
    """A running reference server. It stops at the end of its ``with`` block, or by :meth:`stop`."""

    url: str
    """The URL, such as ``https://127.0.0.1:41234``."""
    token: str
    """The bearer token of the administrator."""
    ca: str
    """The certificate authority in PEM. Empty without TLS."""
    ca_file: Path
    """A file with the certificate authority."""
    kubeconfig: Path
    """A kubeconfig of the administrator."""

    def __init__(self, arguments: list[str], timeout: float) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="kubeproof-")
        directory = Path(self._directory.name)
        self.kubeconfig = directory / "kubeconfig"
        self.ca_file = directory / "ca.crt"
        log = directory / "log"
        # atexit also stops the servers of a program that ends by an exception.
        atexit.register(self.stop)
        self._process: Optional[subprocess.Popen[str]] = None
        try:
            with log.open("w") as errors:
                self._process = subprocess.Popen(
                    [
                        str(find_binary()),
                        "serve",
                        *("--listen", "127.0.0.1:0", "--kubeconfig-out", str(self.kubeconfig)),
                        *arguments,
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                )
            line = _first_line(self._process, timeout)
            if line is None or not line.startswith(_READY):
                self._process.kill()
                code = self._process.wait()
                raise StartError(_reason(line, code, timeout, log.read_text()))
            self.url = line[len(_READY) :].strip()
            self._read_kubeconfig()
        except BaseException:
            self.stop()
            raise

    def _read_kubeconfig(self) -> None:
        config = json.loads(self.kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self.token = config["users"][0]["user"]["token"]
        self.ca = base64.b64decode(cluster.get("certificate-authority-data", "")).decode()
        self.ca_file.write_text(self.ca)

    def stop(self) -> None:
        """Stop the server, and remove its files. A second call does nothing."""
        atexit.unregister(self.stop)
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(_STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._directory.cleanup()

    def __enter__(self) -> "Server":
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.stop()


def server(
    *,
    tls: bool = True,
    faults: Iterable[str] = (),
    load: Iterable[StrPath] = (),
    user_token: Optional[str] = None,
    arguments: Iterable[str] = (),
    timeout: float = 10.0,
) -> Server:
    """Start a server with its own state on a free port.

    :param tls: Serve TLS with new certificates. Clients send tokens only over TLS.
    :param faults: Deliberate bugs; ``kubeproof serve --list-faults`` lists them.
    :param load: Files with objects that exist before the server is ready.
    :param user_token: The bearer token of a user without permissions.
    :param arguments: More arguments of ``kubeproof serve``.
    :param timeout: Seconds until the server must be ready.
    :raises StartError: if the server does not start.
    :raises BinaryNotFoundError: if the binary is missing.
    """
    options = ["--tls"] if tls else []
    options += _repeated("--fault", faults)
    options += _repeated("--load", (os.fspath(path) for path in load))
    if user_token is not None:
        options += ["--user-token", user_token]
    return Server([*options, *arguments], timeout)


def _repeated(flag: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (flag, value)]


def _first_line(process: "subprocess.Popen[str]", timeout: float) -> Optional[str]:
    """Return the first line of the output, or ``None`` if the timeout expires."""
    lines: "queue.Queue[str]" = queue.Queue()
    output = process.stdout
    assert output is not None, "the output is a pipe"

    def read(output: IO[str]) -> None:
        lines.put(output.readline())

    threading.Thread(target=read, args=(output,), daemon=True).start()
    try:
        return lines.get(timeout=timeout)
    except queue.Empty:
        return None


def _reason(line: Optional[str], code: int, timeout: float, log: str) -> str:
    if line is None:
        problem = f"was not ready after {timeout} s"
    else:
        problem = f"exited with code {code}"
    return f"kubeproof serve {problem}: {(line or '') + log}".strip()
