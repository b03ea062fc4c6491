"""The way in: whether every part of a request reaches the prompt unaltered and in order."""
