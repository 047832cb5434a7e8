"""Fixtures for pytest, which finds them when the package is installed.

``@pytest.mark.kubeproof(faults=[..])`` sets the options of :func:`kubeproof.server`.
"""

from collections.abc import Iterator

import pytest

from ._server import Server, server


def pytest_configure(config: pytest.Config) -> None:
    """Document the marker, which ``--strict-markers`` requires."""
    config.addinivalue_line(
        "markers", "kubeproof(**options): start kubeproof_server with these options"
    )


@pytest.fixture
def kubeproof_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Start a server for one test."""
    marker = request.node.get_closest_marker("kubeproof")
    with server(**(marker.kwargs if marker else {})) as running:
        yield running


@pytest.fixture(scope="session")
def kubeproof_session_server() -> Iterator[Server]:
    """Start a server for all tests of the session."""
    with server() as running:
        yield running
