"""The Python client against the streams of the server: v4.channel.k8s.io and port-forward with two channels a port."""

import sys

from kubernetes import client, config
from kubernetes.stream import portforward, stream

config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()


def execute(command, stdin=False):
    return stream(
        core.connect_get_namespaced_pod_exec, "one", "default", command=command,
        stdin=stdin, stdout=True, stderr=True, tty=False, _preload_content=False,
    )


def forward(ports):
    return portforward(core.connect_get_namespaced_pod_portforward, "one", "default", ports=ports)


def read(connection, until):
    received = b""
    while not until(received):
        piece = connection.recv(65536)
        assert piece, f"the connection ended behind {received!r}"
        received += piece
    return received


command = execute(["sh", "-c", "echo out; echo err >&2; exit 7"])
command.run_forever(timeout=20)
assert command.read_stdout() == "out\n"
assert command.read_stderr() == "err\n"
assert command.returncode == 7, command.returncode

command = execute(["head", "-n", "2"], stdin=True)
command.write_stdin("one\n")
command.write_stdin("two\n")
command.run_forever(timeout=20)
assert command.read_stdout() == "one\ntwo\n"
assert command.returncode == 0, command.returncode

command = execute(["seq", "200000"])
command.run_forever(timeout=20)
assert command.read_stdout() == "".join(f"{n}\n" for n in range(1, 200001))

ports = forward("7,1")
echo = ports.socket(7)
echo.setblocking(True)
echo.sendall(b"hello")
assert read(echo, lambda received: len(received) >= 5) == b"hello"
assert "refused" in (ports.error(1) or ""), ports.error(1)
assert ports.error(7) is None, ports.error(7)

http = forward("8080").socket(8080)
http.setblocking(True)
http.sendall(b"GET / HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n")
assert read(http, lambda received: b"\r\n\r\n" in received).startswith(b"HTTP/1.1 200")
