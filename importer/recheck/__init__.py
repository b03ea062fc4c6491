"""What would be written if a document were imported again now, and why; nothing is written."""
