"""Planted faults: harmed models and documents beside their unharmed twins; ``python -m tests.faults``."""
