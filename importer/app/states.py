"""The states of a document, for help texts that load nothing else."""

from __future__ import annotations

from typing import Literal

State = Literal["draft", "approved", "validated", "ready", "published", "rejected", "stale"]
INVALID: Literal["invalid"] = "invalid"  # the state of a document that cannot be read; a service keeps none
# In the order of a document's life; what cannot be read is first.
STATES = (INVALID, "draft", "stale", "rejected", "approved", "validated", "ready", "published")
