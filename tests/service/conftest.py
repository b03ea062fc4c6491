"""One PostgreSQL for all tests of this room: a fixture that a module imports is one of its own."""

from tests.postgres import postgres

__all__ = ["postgres"]
