"""Probes against a running engine, and the meaning of their outcomes."""
