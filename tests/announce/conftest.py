"""Fixtures of these tests."""

from collections.abc import Iterator

import pytest

from tests.announce.server import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    """An HTTP server that answers each request with 200 and an empty JSON object, unless its script says otherwise."""
    with serving() as made:
        yield made
