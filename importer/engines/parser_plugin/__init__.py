"""A tool parser of ours for vLLM; loaded in the engine's environment, importing nothing of the importer."""
