"""The states of a document and the orders of lists, for help texts that load nothing else."""

from __future__ import annotations

from typing import Literal, get_args

State = Literal["draft", "approved", "validated", "ready", "published", "rejected", "stale"]
INVALID = "invalid"  # the state of a document that cannot be read; a service keeps none
# In the order of a document's life; what cannot be read is first.
STATES = (INVALID, "draft", "stale", "rejected", "approved", "validated", "ready", "published")
Sort = Literal["name", "model", "backend", "state", "context", "weights", "memory", "checked", "attention"]
SORTS: tuple[Sort, ...] = get_args(Sort)
