"""The rungs between a client's messages and its answer: facts by exact comparison of neighbours."""
