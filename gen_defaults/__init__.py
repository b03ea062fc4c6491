"""The job that generates the tables and registries from their sources."""

import sys

# As in ``importer``: ``python -m`` searches the working directory first.
if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    _HERE = __file__.rpartition("/")[0].rpartition("/")[0]
    sys.path[:] = [p for p in sys.path if p == _HERE or p not in {sys.path[0], "", "."}]
