"""A program in an engine's environment that runs its parsers; it imports nothing of importer."""
