"""The use cases: import, fill, recheck, validate; the only door to the rooms below."""
