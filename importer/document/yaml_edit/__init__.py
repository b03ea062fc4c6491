"""Edits of a YAML text that leave every other byte as it stands."""
