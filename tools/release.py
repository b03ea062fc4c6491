"""Build a release and check it: ``make release``; the last lines are what a person types to publish it.

Everything is built twice of the committed tree, in folders of their own, and must be equal byte for byte. The
result lies in ``dist``: wheel, source archive and a bill of materials.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from importer.version import __version__
from tools.system_packages import place

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")  # of the classifiers
HEAD = re.compile(r"^## \[(?P<version>[\d.]+)\] - (?P<day>\S+)$", re.MULTILINE)
# Debian's releases with a Python; an interpreter of this machine comes first.
SUITES = {"3.13": "trixie", "3.14": "sid"}
# What an install with these extras can do, and one with fewer cannot.
PAGE = "import importer.service.web as w; open(w.__path__[0] + '/built/index.html')"
SHOWN = {"": "from importer.app import gallery", "[service]": f"import importer.service.app; {PAGE}"}
# A shell without a network that still has its own loopback; root alone may have one.
CUT = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


def main() -> int:
    """Return 0 where the release is sound; SystemExit names what is not."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("--no-installs", action="store_true", help="build and check, and install nowhere")
    parser.add_argument("--tree", default="HEAD", metavar="COMMIT", help="what is built (default: HEAD)")
    chosen = parser.parse_args()
    named = ["git", "rev-parse", "--quiet", "--verify", f"{chosen.tree}^{{tree}}"]
    if subprocess.run(named, cwd=ROOT, capture_output=True, check=False).returncode:
        parser.error(f"argument --tree: there is no commit {chosen.tree}")
    day = agreed()
    with tempfile.TemporaryDirectory() as folder:
        first, second = (built(Path(folder) / name, chosen.tree) for name in ("first", "second"))
        compared(first, second)
        shutil.rmtree(DIST, ignore_errors=True)
        shutil.copytree(first, DIST)
    wheel, archive = next(DIST.glob("*.whl")), next(DIST.glob("*.tar.gz"))
    run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(archive))
    contents(wheel, archive)
    bill = DIST / f"model_importer-{__version__}.cdx.json"
    bill.write_text(json.dumps(materials(), indent=1) + "\n", encoding="utf-8")
    if not chosen.no_installs:
        installed(wheel)
    for file in sorted(DIST.iterdir()):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        print(f"{digest}  dist/{file.name}  {file.stat().st_size:,} bytes")
    print("\n".join(["", "To publish, type:", *(f"    {line}" for line in commands(day))]))
    return 0


def agreed() -> str:
    """Return the day of the release in the changelog, or *unreleased*; the versions must agree."""
    head = HEAD.search((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    if head is None or head["version"] != __version__:
        raise SystemExit(
            f"CHANGELOG.md does not begin with {__version__}, the version of importer/version.py"
        )
    return head["day"]


def commands(day: str) -> Iterator[str]:
    """Yield what a person types; the workflow ``release`` does the rest."""
    today = datetime.datetime.now(datetime.UTC).date()
    change = f"sed -i 's/^## \\[{__version__}\\] - .*/## [{__version__}] - {today}/' CHANGELOG.md"
    yield f"{change} && git commit -am 'Release {__version__}'" if day == "unreleased" else "git status"
    yield f"git tag -s v{__version__} -m 'importer {__version__}'"
    yield f"git push origin HEAD v{__version__}"
    if "OWNER" in address():
        print("The address of the repository is a placeholder; write it into pyproject.toml first (OWNER).")


def address() -> str:
    """Return the address of the repository, of its one place."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["address"])


def built(folder: Path, tree: str) -> Path:
    """Return the folder of the archive of a tree, and of the wheel that this archive gives."""
    (source := folder / "source").mkdir(parents=True)
    packed = subprocess.run(["git", "archive", tree], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x"], cwd=source, input=packed, check=True)
    epoch = subprocess.run(
        ["git", "log", "-1", "--format=%ct", tree], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    words = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist"), str(source)]
    run(*words, environment=environment)
    return folder / "dist"


def compared(first: Path, second: Path) -> None:
    """Raise SystemExit where two builds differ."""
    names = sorted(path.name for path in first.iterdir())
    for name in names:
        if (first / name).read_bytes() != (second / name).read_bytes():
            raise SystemExit(f"two builds of {name} differ")
    print(f"two builds are equal: {', '.join(names)}")


def contents(wheel: Path, archive: Path) -> None:
    """Raise SystemExit where a file is missing or is too much, or has no licence."""
    in_wheel = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0].partition("-")[0] for name in in_wheel}
    licences = [n for n in in_wheel if n.endswith(("/licenses/LICENSE", "/built/LICENSES.txt"))]
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    in_tree = {name for name in tracked.stdout.splitlines() if not name.startswith(".ci/")}
    with tarfile.open(archive) as opened:
        in_archive = {name.partition("/")[2] for name in opened.getnames()}
    lacking = in_tree - in_archive
    extra = {
        n for n in in_archive - in_tree - {"PKG-INFO"} if not n.startswith("importer/service/web/built/")
    }
    about = next(n for n in in_wheel if n.endswith(".dist-info/METADATA"))
    told = "License-Expression: Apache-2.0" in zipfile.ZipFile(wheel).read(about).decode()
    if tops != {"importer", "model_importer"} or len(licences) != 2 or lacking or extra or not told:
        raise SystemExit(
            f"contents: {tops}, {licences}, lacking {lacking}, extra {extra}, licence told: {told}"
        )
    counts = f"{len(in_wheel)} files in the wheel, {len(in_archive)} in the archive, {len(licences)} licences"
    print(f"contents: {counts}")


def materials() -> dict[str, Any]:
    """Return the bill of materials in CycloneDX's form: packages of the service, and parts of the page."""
    lock = (ROOT / "requirements-service.lock").read_text(encoding="utf-8")
    parts = [("pypi", *named) for named in re.findall(r"^([\w.-]+)==([^\s;]+)", lock, re.MULTILINE)]
    page = json.loads((ROOT / "importer/service/web/package-lock.json").read_text(encoding="utf-8"))
    parts += [
        ("npm", path.rpartition("node_modules/")[2], one["version"])
        for path, one in page["packages"].items()
        if path and not one.get("dev") and not one.get("optional")
    ]
    component = {"type": "application", "name": "model-importer", "version": __version__}
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"component": {**component, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": [
            {"type": "library", "name": n, "version": v, "purl": f"pkg:{kind}/{n.replace('@', '%40')}@{v}"}
            for kind, n, v in sorted(set(parts))
        ],
    }  # fmt: skip


def installed(wheel: Path) -> None:
    """Install the wheel from a folder on each Python, without a network, and try each extra; run the demo."""
    print(f"the network is {'cut' if cut() else 'not cut: that needs root, unshare and ip'}")
    missing, done = [], 0
    for version in PYTHONS:
        with tempfile.TemporaryDirectory() as folder:
            machine = Machine.having(version, Path(folder) / "root")
            if machine is None:
                missing.append(version)
                continue
            _installed(wheel, machine)
            if not done:
                demo(machine)
            done += 1
    print(f"not to be had here, so not tried: Python {', '.join(missing) or 'none'}")


def _installed(wheel: Path, machine: Machine) -> None:
    (machine.root / "wheels").mkdir(parents=True)
    shutil.copy(wheel, machine.root / "wheels")
    machine.run(machine.python, "-m", "venv", "@get")
    machine.run("@get/bin/pip", "download", "-q", "-d", "@wheels", f"@wheels/{wheel.name}[service]")
    for number, (extras, shown) in enumerate(SHOWN.items()):
        machine.run(machine.python, "-m", "venv", f"@v{number}")
        from_folder = ("--no-index", "--find-links", "@wheels", f"model-importer{extras}")
        machine.run(f"@v{number}/bin/pip", "install", "-q", *from_folder, offline=True)
        machine.run(f"@v{number}/bin/python", "-c", shown, offline=True)
    for command in ("importer", "model-importer"):
        told = machine.run(f"@v0/bin/{command}", "--version", offline=True).strip()
        if told != f"importer {__version__}":
            raise SystemExit(f"{command} --version: {told}")
    model = machine.run("@v0/bin/python", "-c", "from importer.demo import MODEL; print(MODEL)").strip()
    machine.run("@v0/bin/importer", model, "--backend", "mlx", "--dry-run", "--json", offline=True)
    about = [*(machine.root / "v0").glob("lib/*/site-packages/*.dist-info")]
    files = [file for file in (machine.root / "v0").rglob("*") if file.is_file() and not file.is_symlink()]
    size = sum(file.stat().st_size for file in files if "/pip" not in str(file)) >> 20
    told = machine.run(machine.python, "--version").strip()
    print(f"{told}: installs and decides; {size} MiB, {len(about) - 1} packages beside pip")


def demo(machine: Machine) -> None:
    """Run the demo from the installed wheel, with the engine installed before the network is cut."""
    machine.run("@v0/bin/importer", "engine", "install", "mlx")
    told = machine.run("@v0/bin/importer", "demo", "--dir", "@models", offline=True)
    verdict = next((line for line in told.splitlines() if line.startswith("contract: ")), told[-500:])
    if not verdict.startswith("contract: holds"):
        raise SystemExit(f"the demo is not validated: {verdict}")
    print(f"the demo, validated on mlx: {verdict}")


def cut() -> Sequence[str]:
    """Return the words before a command that has no network; none where this user may not."""
    return CUT if os.geteuid() == 0 and shutil.which("unshare") and shutil.which("ip") else ()


def interpreter(version: str) -> str | None:
    """Return a Python of this machine that runs; a shim of pyenv stands for those of its folder."""
    first = shutil.which(f"python{version}")
    if first is None:
        return None
    for found in (first, *map(str, Path(first).parents[1].glob(f"versions/{version}.*/bin/python3"))):
        if subprocess.run([found, "-V"], capture_output=True, check=False).returncode == 0:
            return found
    return None


class Machine:
    """A folder with a Python: of this machine, or of another release of Debian below it."""

    def __init__(self, root: Path, python: str, inside: str, prefix: Sequence[str] = ()) -> None:
        self.root, self.python, self._inside, self._prefix = root, python, inside, prefix
        root.mkdir(exist_ok=True)

    @classmethod
    def having(cls, version: str, root: Path) -> Machine | None:
        """Return a machine with this Python, or ``None``."""
        if python := interpreter(version):
            return cls(root, python, str(root))
        if version not in SUITES or place("debootstrap") is None or os.geteuid() != 0:
            return None
        words = ["--variant=minbase", "--include=ca-certificates,python3,python3-venv", SUITES[version]]
        made = subprocess.run(["debootstrap", *words, str(root)], check=False, capture_output=True)
        python = f"/usr/bin/python{version}"
        if made.returncode or not (root / python[1:]).is_file():
            return None
        for file in map(Path, ("/etc/ssl/certs/ca-certificates.crt", "/etc/resolv.conf", "/etc/pip.conf")):
            if file.is_file():
                shutil.copy(file, root / str(file)[1:])
        mounted = ["unshare", f"--mount-proc={root}/proc", "--pid", "--fork", "chroot", str(root)]
        return cls(root, python, "", mounted)

    def run(self, *words: str, offline: bool = False) -> str:
        """Run a command, without a network where ``offline``; a word that begins with @ is a path."""
        named = [f"{self._inside}/{word[1:]}" if word.startswith("@") else word for word in words]
        kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PIP_FIND_LINKS")}
        environment = kept | {"HOME": "/"} if self._prefix else kept
        return run(*(cut() if offline else ()), *self._prefix, *named, cwd=self.root, environment=environment)


def run(*words: str, cwd: Path = ROOT, environment: dict[str, str] | None = None) -> str:
    """Run a command and return its output; SystemExit has the end of it where it fails."""
    keep = environment or {**os.environ}
    keep = {name: value for name, value in keep.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(words, cwd=cwd, env=keep, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
