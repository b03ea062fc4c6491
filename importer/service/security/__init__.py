"""Callers and their scopes, grants, and the limits of requests."""
