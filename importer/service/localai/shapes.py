"""What LocalAI's routes take and answer, for OpenAPI."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

EXAMPLE: JsonDict = {"uri": "huggingface://Qwen/Qwen3-8B", "preferences": {"backend": "vllm"}}


class ImportUri(BaseModel):
    """What to import; members that nobody knows are passed over, as LocalAI does."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    uri: str
    preferences: dict[str, Any] | None = Field(
        default=None, description="backend, name and description count"
    )


class Begun(BaseModel):
    """An operation that has begun."""

    uuid: str
    status: str = Field(description="where its state is")
    estimated_vram_bytes: int | None = Field(default=None, ge=0)
    estimated_vram_display: str | None = None
    estimated_size_bytes: int | None = Field(default=None, ge=0)
    estimated_size_display: str | None = None


class OpStatus(BaseModel):
    """An operation's state; one that failed is processed and has an error."""

    deletion: bool
    file_name: str
    error: str | None = None
    processed: bool
    message: str
    progress: float = Field(ge=0, le=100)
    phase: str | None = None
    file_size: str
    downloaded_size: str
    gallery_element_name: str
    cancelled: bool
    cancellable: bool


class GalleryOf(BaseModel):
    """A gallery."""

    url: str
    name: str


class Available(BaseModel):
    """A model that a gallery has."""

    name: str
    description: str
    license: str | None = None
    urls: list[str]
    tags: list[str]
    gallery: GalleryOf
    backend: str


class KnownBackend(BaseModel):
    """A backend that imports may be for."""

    name: str
    modality: str
    auto_detect: bool
    description: str | None = None
    installed: bool


class Patched(BaseModel):
    """What came of an edit."""

    success: bool
    message: str
    config_revision: str
    pending_cleanup: int


class ErrorOf(BaseModel):
    """What went wrong."""

    code: int
    message: str
    type: str


class Failed(BaseModel):
    """The envelope of most failures."""

    error: ErrorOf


class Ambiguous(BaseModel):
    """Several backends could take it."""

    error: str = Field(examples=["ambiguous import"])
    detail: str
    modality: str
    candidates: list[str]
    hint: str


class FlatFailed(BaseModel):
    """The envelope of failures around a configuration."""

    error: str
