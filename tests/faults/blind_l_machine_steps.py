"""Steps of round l that change the engine's Python and the machine around it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults.fault import Site
from tests.faults.starting import Module

AFTER_IMPORT = """
import importlib.abc, importlib.machinery, sys


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != {module!r}:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            exec({change!r}, module.__dict__)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder())
"""


@dataclass(frozen=True)
class Changed:
    """A module of the engine's environment is another version: this code runs in it after its own."""

    module: str
    change: str

    def plant(self, site: Site) -> None:
        text = AFTER_IMPORT.format(module=self.module, change=self.change)
        Module("sitecustomize", text).plant(site)
