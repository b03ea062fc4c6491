"""The start of a worker: ``python -I <this file> ENGINE`` serves an engine's parsers over standard streams.

Where ``importer-parser-sources`` lies beside the environment, the engine is what is there, and the rest of it
stood in. This folder is loaded as a package of its own, so nothing of importer can be imported from here:
next to it lie modules named like the engines.
"""

import importlib
import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = "importer_parser_worker"

if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location(
        PACKAGE, HERE / "__init__.py", submodule_search_locations=[str(HERE)]
    )
    if spec is None or spec.loader is None:
        sys.exit(f"{HERE} cannot be loaded")
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = package
    spec.loader.exec_module(package)
    # The line protocol takes over the descriptors before the engine is imported: engines print on import.
    wire = importlib.import_module(f"{PACKAGE}.wire")
    line = wire.Line()
    sources = Path(sys.prefix).parent / "importer-parser-sources"
    if sources.is_dir():
        parts = importlib.import_module(f"{PACKAGE}.parts").PARTS[sys.argv[1]]
        importlib.import_module(f"{PACKAGE}.stand_ins").install(parts, sources)
    worker = importlib.import_module(f"{PACKAGE}.{sys.argv[1].replace('-', '_')}_worker")
    wire.serve(line, worker.operations())
