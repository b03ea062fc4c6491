"""A module each, with ``answers(models, released)``, and ``NAMES_ONLY`` where it reads no file."""
