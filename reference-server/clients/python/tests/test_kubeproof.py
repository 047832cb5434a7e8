"""Tests of the installed wheel, with the official client.

Run by ``check``, which installs both into a new environment.
"""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from kubernetes import client, config, watch
from kubernetes.client import ApiException, V1ConfigMap, V1ObjectMeta

import kubeproof


def api(server: kubeproof.Server) -> client.CoreV1Api:
    return client.CoreV1Api(config.new_client_from_config(str(server.kubeconfig)))


def config_map(name: str) -> V1ConfigMap:
    return V1ConfigMap(metadata=V1ObjectMeta(name=name), data={"key": "value"})


def test_the_client_writes_reads_and_watches() -> None:
    with kubeproof.server() as server:
        core = api(server)
        created = core.create_namespaced_config_map("default", config_map("first"))
        version = created.metadata.resource_version
        assert core.read_namespaced_config_map("first", "default").data == {"key": "value"}

        core.create_namespaced_config_map("default", config_map("second"))
        events = watch.Watch().stream(
            core.list_namespaced_config_map, "default", resource_version=version, timeout_seconds=20
        )
        assert next(iter(events))["object"].metadata.name == "second"

        with pytest.raises(ApiException) as taken:
            core.create_namespaced_config_map("default", config_map("first"))
        assert taken.value.status == 409


def test_url_token_and_ca_are_enough() -> None:
    with kubeproof.server() as server:
        assert server.ca.startswith("-----BEGIN CERTIFICATE-----")
        settings = client.Configuration(host=server.url)
        settings.ssl_ca_cert = str(server.ca_file)
        settings.api_key = {"authorization": f"Bearer {server.token}"}
        core = client.CoreV1Api(client.ApiClient(settings))
        assert "default" in [item.metadata.name for item in core.list_namespace().items]


def test_servers_are_independent_and_stop() -> None:
    with kubeproof.server() as one, kubeproof.server() as other:
        assert one.url != other.url
        api(one).create_namespaced_config_map("default", config_map("only-here"))
        with pytest.raises(ApiException) as missing:
            api(other).read_namespaced_config_map("only-here", "default")
        assert missing.value.status == 404
        process = one._process
    assert process is not None and process.returncode is not None
    assert not one.kubeconfig.exists()
    one.stop()


@pytest.mark.kubeproof(faults=["already-exists-as-bad-request"])
def test_the_fixture_takes_options(kubeproof_server: kubeproof.Server) -> None:
    core = api(kubeproof_server)
    core.create_namespaced_config_map("default", config_map("first"))
    with pytest.raises(ApiException) as taken:
        core.create_namespaced_config_map("default", config_map("first"))
    assert taken.value.status == 400


def test_the_session_has_a_server(kubeproof_session_server: kubeproof.Server) -> None:
    assert api(kubeproof_session_server).get_api_resources().resources


def test_objects_of_files_exist(tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text("kind: Namespace\napiVersion: v1\nmetadata: {name: shop}\n")
    with kubeproof.server(load=[file], tls=False) as server:
        assert server.url.startswith("http://")
        assert server.ca == ""


def test_a_wrong_option_shows_the_message_of_the_server() -> None:
    before = threading.active_count()
    with pytest.raises(kubeproof.StartError, match="exited with code 2: .*no fault has the name"):
        kubeproof.server(faults=["no-such-fault"])
    assert threading.active_count() == before


def test_a_server_that_is_not_ready_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("KUBEPROOF_BINARY", str(slow))
    with pytest.raises(kubeproof.StartError, match="not ready after 0.2 s"):
        kubeproof.server(timeout=0.2)


def test_a_missing_binary_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda *_: "/nonexistent")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(kubeproof.BinaryNotFoundError, match="install kubeproof from a wheel"):
        kubeproof.server()


def test_the_command_line_is_installed() -> None:
    script = Path(sys.executable).parent / "kubeproof"
    for command in [[script], [sys.executable, "-m", "kubeproof"]]:
        run = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert run.stdout.startswith("kubeproof ")
