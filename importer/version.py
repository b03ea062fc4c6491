"""The version of importer; pyproject.toml reads it here."""

__version__ = "0.1.0"
DISTRIBUTION = "model-importer"  # PyPI's importer is another project
