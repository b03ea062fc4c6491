"""Released files in the package index that pip is configured with: found, and read by ranges."""

import sys

# The caller's pip may lie among the caller's own packages, invisible with ``-I``.
PIP = (sys.executable, "-P", "-m", "pip")
