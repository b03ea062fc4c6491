"""The version of importer; pyproject.toml reads it here."""

__version__ = "0.1.0"
