"""The use cases: import, fill, recheck, validate, export; the only door to the rooms below."""
