"""The routes, one small module each. ``ALL`` has one line for each."""

from __future__ import annotations

from importlib import import_module

from fastapi import APIRouter

ALL = (
    "imports",
    "jobs",
    "configs",
    "review",
    "releases",
    "restore",
    "upkeep_groups",  # before the findings by their id
    "upkeep",
    "bulk",
    "webhooks",
    "preview",
    "keys",
    "about",
    "devices",
    "operation",
    "pages",
    "gallery",
    "localai",
    "localai_configs",
)


def routers() -> list[APIRouter]:
    """Return every module's router."""
    return [import_module(f"{__name__}.{name}").router for name in ALL]
