"""Request coverage: whether every part of a request reaches the prompt unaltered and in order."""
