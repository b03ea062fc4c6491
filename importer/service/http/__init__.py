"""The routes, one small module each. ``ALL`` has one line for each."""

from __future__ import annotations

from importlib import import_module

from fastapi import APIRouter

ALL = (
    "imports",
    "jobs",
    "configs",
    "overview",
    "review",
    "review_page",
    "measurements",
    "releases",
    "restore",
    "upkeep_groups",  # before the findings by their id
    "upkeep",
    "bulk",
    "webhooks",
    "preview",
    "editor_schema",
    "keys",
    "about",
    "devices",
    "health",
    "admin",
    "pages",
    "gallery",
    "localai",
    "localai_configs",
)


def routers() -> list[APIRouter]:
    """Return every module's router."""
    return [import_module(f"{__name__}.{name}").router for name in ALL]
