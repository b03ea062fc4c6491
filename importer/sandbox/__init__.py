"""A bounded child process that reads whatever a stranger wrote."""
