"""Model names, freed of spelling, quantisation and file format, and the patterns that match them."""

from __future__ import annotations

import re
from functools import lru_cache

from importer.frozen import frozen

_VERSION = re.compile(r"\.#(?![a-z])")
_LOOSE = {"-": "-?", ".": "[.-]", "#": "[0-9]+", "~": r"(?:\.[0-9]+|-[0-9])", "_": "-"}
_BETWEEN_DIGITS = re.compile(r"(?<=[0-9#])-(?=[0-9#])")
_JUNCTION = re.compile(r"(?<=[a-z])(?=[0-9#])|(?<=[0-9#])(?=[a-z])")
_PREFIX = re.compile(
    r"^(?:(?:[a-z][a-z0-9+.-]*:/+|(?:www\.)?(?:huggingface\.co|hf\.co|hf-mirror\.com)/+"
    r"|(?:api/)?models/+(?=[^/]+/+[^/])))+"
)
_INNER_PATH = re.compile(r"/(?:tree|blob|resolve|raw|commits?|discussions|snapshots)/.*$")
_CACHE_FOLDER = re.compile(r"(?:^|/)models--([^/]+?)--([^/]+)")
# Suffixes of quantisers and converters; ``_bare`` removes one after another.
_SUFFIXES = r"""
    [wqa]?[1-8](?:\.[0-9]+)?-?(?:bits?|bpw)
    (?:mx|nv)?fp[468](?:-?e[45]m[123])? fp(?:16|32) bf16 f(?:16|32) nf4 nvfp4a16 mxint[48]
    int[2-8](?:-?int[48])?(?:-?mix)?
    w[2-8]a(?:4|8|16)(?:-?fp8)? w-(?:mx)?fp[48](?:-a-(?:bf16|fp(?:8|16)))? kv8? kv-?(?:cache-?)?fp8 h[68]
    q[2-8](?:-[01k](?:-(?:xs|s|m|l|xl))?)? iq[1-4]-(?:xxs|xs|s|m|nl|xl) gs?(?:32|64|128) (?:32|64|128)g a?sym
    awq gptq gptqmodel gguf ggml exl[23] hqq aqlm quip bnb eetq auto-?round torchao quark marlin modelopt
    compressed(?:-tensors)? qat(?:-mobile)? qad ud imat(?:rix)? i1 dwq dynamic static per-?tensor per-?channel
    block(?:wise)? quanti[sz]ed quant mixed
    mlx onnx openvino ov coreml safetensors llamafile ct2? trtllm tensorrt(?:-llm)? hf [0-9]{5}-of-[0-9]{5}
"""
_LONGEST = 60  # characters; no suffix has more
_SUFFIX = re.compile(rf"[-.](?:{'|'.join(_SUFFIXES.split())})$")


def length(pattern: str) -> int:
    """Return the length that orders patterns, longest first: 2 a character, 1 a wildcard digit."""
    bare = pattern.rpartition("/")[2]
    return 2 * sum(c.isalnum() for c in bare) + bare.count("#")


def search(pattern: str, name: str) -> str | None:
    """Return the part of the normalised ``name`` that the pattern (no organisation) covers, or ``None``."""
    compact = _compact(name)
    if not all(word in compact for word in words(pattern)):
        return None  # a quick check that spares compiling most patterns
    match = _compiled(pattern).search(name)
    return match.group() if match else None


@lru_cache(maxsize=2048)
def words(pattern: str) -> tuple[str, ...]:
    """Return the parts between wildcards, without separators: all of them stand in any name that matches."""
    return tuple(p for p in re.split(r"[*#]", _compact(pattern)) if p)


@lru_cache(maxsize=2048)
def _compact(text: str) -> str:
    return text.replace("-", "").replace(".", "")


@lru_cache(maxsize=2048)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(".*?".join(_part(p) for p in pattern.split("*")))


def _part(part: str) -> str:
    body = _JUNCTION.sub("-", _VERSION.sub("~", _BETWEEN_DIGITS.sub("_", part)))
    body = "".join(_LOOSE.get(c) or re.escape(c) for c in body)
    start = r"(?<![a-z0-9])" + (r"(?<![0-9]\.)" if part[0].isdigit() else "")
    end = r"(?![a-z0-9])" + (r"(?!\.[0-9])(?!-[0-9](?:-|$))" if part[-1].isdigit() or part[-1] == "#" else "")
    return f"{start}{body}{end}"


@frozen
class Name:
    """Organisation (or empty) and name of a model, both in lower case with ``-`` between words."""

    org: str
    name: str


@lru_cache(maxsize=8192)
def normalise(text: str) -> Name:
    """Return organisation and bare name of a reference in any form; never raises, idempotent.

    Strips scheme, host, revision, query and inner paths, then suffixes of quantisation and file format one
    after another, as long as something is left. Of a local path the last folder counts.
    """
    path = _strip(text.strip().lower())
    org, _, name = path.rpartition("/")
    bare = _bare(name)
    return Name(_clean(org), bare) if bare else Name("", _bare(org))


def _strip(text: str) -> str:
    text = text.replace("\\", "/")
    cached = _CACHE_FOLDER.search(text)
    if cached:
        return f"{cached[1]}/{cached[2]}"
    local = text.startswith(("/", "./", "../", "~", "file:"))
    if not local:
        text = re.split(r"[?#]", text, maxsplit=1)[0]
        text = _PREFIX.sub("", text)
        text = re.split(r"[@:]", _INNER_PATH.sub("", text), maxsplit=1)[0]
    parts = [p for p in text.split("/") if p not in ("", ".", "..")]
    return "/".join(parts[-1:] if local else parts[:2])


def _clean(text: str) -> str:
    text = re.sub(r"[^a-z0-9.]+", "-", text)
    return re.sub(r"-{2,}", "-", text).strip("-.")


def _bare(text: str) -> str:
    text = _clean(text)
    end = len(text)
    while (match := _SUFFIX.search(text, max(0, end - _LONGEST), end)) is not None:
        begun = match.start()
        while begun and text[begun - 1] in "-.":
            begun -= 1
        if not begun:
            break
        end = begun
    return text[:end]


def is_suffix(word: str) -> bool:
    """Return whether ``word`` is a suffix for quantisation or file format."""
    return _SUFFIX.fullmatch(f"-{word}") is not None


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a normalised name."""
    return tuple(w for w in name.split("-") if w)
