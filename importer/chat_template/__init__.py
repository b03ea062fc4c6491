"""Chat templates: their files, their rendering, and their analysis by rendering known conversations."""
