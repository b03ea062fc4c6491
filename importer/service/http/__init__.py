"""The routes by subject. ``ALL`` has a line for each router, in the order of matching addresses."""

from __future__ import annotations

from pkgutil import resolve_name

from fastapi import APIRouter

ALL = (
    "configs.router",  # first, since it is asked most
    "imports.router",
    "imports.router_hub",
    "jobs.router",
    "overview.router",
    "review.router",
    "review.router_review_page",
    "memory.router",
    "releases.router",
    "recheck.router",
    "editor.router_preview",
    "editor.router",
    "health.router_about",
    "health.router_devices",
    "health.router",
    "pages.router",
    "overview.router_gallery",
    "localai.router",
)


def routers() -> list[APIRouter]:
    """Return every router."""
    return [resolve_name(f"{__name__}.{name}") for name in ALL]
