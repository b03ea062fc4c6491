"""How clients reach this server: what links in answers for other programs begin with."""

from __future__ import annotations

from fastapi import Request

from importer.service.settings import Settings

INDEX = "/gallery/index.yaml"
GALLERY = "importer"  # what LocalAI calls it: an entry is importer@NAME


def base(request: Request, settings: Settings) -> str:
    """``--public-url``, else scheme and host of the request; without a slash at its end."""
    return (settings.public_url or str(request.base_url)).rstrip("/")


def gallery(request: Request, settings: Settings) -> dict[str, str]:
    """What LocalAI's settings name a gallery by."""
    return {"url": base(request, settings) + INDEX, "name": GALLERY}
