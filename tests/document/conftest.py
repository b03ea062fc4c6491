"""The desk of every test in this room."""

from tests.commandline import desk

__all__ = ["desk"]
