"""Runs inside an engine's environment and answers for its parsers; knows nothing of the importer."""
