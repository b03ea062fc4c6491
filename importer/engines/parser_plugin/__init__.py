"""A tool parser for vLLM, loaded in the engine's environment; it imports nothing of importer."""
