"""Decisions from evidence: pure functions."""
