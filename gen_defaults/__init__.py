"""The job that keeps the tables and registries true to their sources."""
