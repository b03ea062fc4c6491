"""Chat templates: where they are, how they render, what they write."""
