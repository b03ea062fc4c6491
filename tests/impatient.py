"""``importer``, whose sandbox may stand still for a second only."""

from __future__ import annotations

import sys

from importer.__main__ import main
from importer.sandbox import pool

if __name__ == "__main__":
    pool.WALL_SECONDS = 1.0
    sys.exit(main())
