"""The facts of a document in responses: description, licence, sizes, context, inputs, validation."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field


class WarningEntry(BaseModel):
    """What needs a person's attention."""

    kind: str = Field(examples=["does-not-fit"])
    key: str = Field(description="the decision that it is about, a path, or `state`")
    reason: dict[str, Any] = Field(description="its kind with its fields")
    message: str


class Memory(BaseModel):
    """The memory that an engine needs of one device, as estimated at the import."""

    bytes: int
    device: str | None = Field(description="null where the import named none")
    cards: int = Field(description="devices of this kind that the model is laid out on")
    context: int | None = Field(description="tokens of the sequence that it is for")


class ValidationFacts(BaseModel):
    """The run of the present data on the document's engine."""

    engine: str
    version: str | None
    label: str = Field(examples=["mlx-lm 0.32.2"])
    state: Literal["passed", "failed"]
    outcomes: dict[str, int] = Field(description="how many probes had each outcome")
    probes: int
    at: str | None = Field(description="when it began")
    message: str = Field(examples=["validated on mlx-lm 0.32.2: 45 of 67 probes passed (22 not applicable)"])


class Facts(BaseModel):
    """What lists and galleries show of a document; null is unknown."""

    description: str
    described_by: Literal["person", "card", "facts"] = Field(
        description="whose the description is: a person's, the card's, or a sentence of these facts"
    )
    summary: str = Field(description="these facts in a sentence")
    license: str | None
    family: str | None
    kind: str
    parameters: int | None
    active: int | None = Field(description="parameters that one token visits")
    context: int | None = Field(description="tokens of one sequence")
    modalities: list[str] = Field(description="inputs", examples=[["text", "image"]])
    tool_parser: str | None
    reasoning_parser: str | None
    quantization: str | None
    weights: int | None = Field(description="bytes as published")
    memory: Memory | None
    validated: ValidationFacts | None = Field(description="null without a validation of the present data")
    last_checked: str | None = Field(description="the day of that validation (UTC)")
    tags: list[str]


class Described(BaseModel):
    """What a document shows in an overview."""

    about: Facts | None = Field(
        default=None, description="all facts, with sentences; `facts` has those of a row"
    )
    needs_attention: list[WarningEntry] = Field(
        default=[],
        description="what a person has to act on, the state first; an approval settles the import's warnings",
    )
