"""``/v1/devices``: the devices that an import may name, with the sources of their figures."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from importer.service.problems import problems
from importer.service.security.auth import Reader

router = APIRouter(prefix="/v1", tags=["devices"])


class DeviceRow(BaseModel):
    """A device; several are ``8xNAME``."""

    name: str
    kind: str
    memory: int | None = Field(description="bytes of one device; null: this machine's own")
    share: float = Field(description="the part that an engine may fill")
    native: list[str] = Field(description="number formats in hardware")
    node: int = Field(description="devices in one machine; more of them are several machines")
    engine: str | None = Field(description="what serves it in place of the released engine")
    source: str


@router.get(
    "/devices",
    response_model=list[DeviceRow],
    responses=problems(),
    summary="The devices that imports may name",
)
def list_(who: Reader) -> list[dict[str, object]]:
    """Return each device with its memory, its number formats and the source of the figures."""
    from importer.memory.devices import known

    del who
    return [
        {
            "name": d.name, "kind": d.kind, "memory": d.memory, "share": d.share, "native": sorted(d.native),
            "node": d.node, "engine": d.engine, "source": d.source,
        }
        for d in known().values()
    ]  # fmt: skip
