"""Named facts read from a snapshot, each with its source and a quote."""
