"""What the service does, without a type of HTTP: documents, releases, rechecks."""
