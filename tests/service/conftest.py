"""What all tests of this room share: a fixture that a module imports is one of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres import postgres
from tests.serving import Service, running

__all__ = ["postgres"]


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server that validates nothing, where each test has documents of its own and looks at no others."""
    with running(tmp_path_factory.mktemp("shared"), "--no-validate", "--rate", "0", "--reads", "0") as one:
        yield one
