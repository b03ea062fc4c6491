"""Probes against a running engine, and what their outcomes mean."""
