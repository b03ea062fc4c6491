"""Evidence: a named fact about one decision, with its source and a quote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact.

    ``rule``    which reader found it: ``family-table``, ``template-format``, ``generation-config`` …
    ``key``     the decision it speaks on: ``kind``, ``tool_parser``, ``parameters.temperature`` …
    ``value``   a JSON value; ``None`` says *known to have none*.
    ``source``  the file, table or tag it was read from.
    ``says``    one sentence for a person.
    ``quote``   the words it rests on, short and verbatim.
    """

    rule: str
    key: str
    value: Any
    source: str
    says: str
    quote: str = ""
