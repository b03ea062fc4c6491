"""Documents chosen by filter in the body of a request; the same filters as those of ``GET /v1/configs``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from importer.app.states import State
from importer.service.domain.import_request import Body, Text
from importer.service.http.query import AttentionFilter, Review, Size, Validation, budget_of
from importer.storage.document_filters import Filters

Values = Annotated[list[Text], Field(max_length=50)]
Chosen = Text | Values | None


class DocumentSelection(Body):
    """Documents by filter; of several values of one filter any will do."""

    state: list[State] = Field(default=[], max_length=10)
    review: list[Review] = Field(default=[], max_length=10)
    validation: list[Validation] = Field(default=[], max_length=10)
    family: Chosen = None
    backend: Chosen = None
    kind: Values = Field(default=[])
    modality: Values = Field(default=[])
    tool_parser: Values = Field(default=[])
    reasoning_parser: Values = Field(default=[])
    license: Values = Field(default=[])
    quantization: Values = Field(default=[])
    size: list[Size] = Field(default=[], max_length=10)
    attention: list[AttentionFilter] = Field(default=[], max_length=20)
    tag: Values = Field(default=[])
    model: Text | None = None
    device: Text | None = Field(default=None, description="only what fits it, such as 2xh100-80g")
    q: Text | None = Field(
        default=None, description="words that all are in its name, model, family, description or tags"
    )

    def filters(self) -> Filters:
        """Return the filters of a query; raises what ``budget_of`` raises."""
        return Filters(
            self.state, _several(self.family), _several(self.backend), self.q, review=self.review,
            validation=self.validation, model=self.model, kind=self.kind, modality=self.modality,
            tool_parser=self.tool_parser, reasoning_parser=self.reasoning_parser, license=self.license,
            quantization=self.quantization, size=self.size, attention=self.attention, tag=self.tag,
            budget=None if self.device is None else budget_of(self.device),
        )  # fmt: skip


def _several(value: str | list[str] | None) -> Sequence[str]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else value
