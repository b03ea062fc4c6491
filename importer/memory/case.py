"""A model, a device and the settings that are asked for: what each layout loads, and its estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Literal

from importer import backends
from importer.frozen import frozen
from importer.memory import engine_keys, pages, rest
from importer.memory.devices import Device
from importer.memory.estimate import estimate
from importer.memory.estimate_types import Fit, Load
from importer.memory.measured import Measured
from importer.memory.parallelism import layouts, most
from importer.memory.plans import NO_AIM, TYPICAL, Aim, Split
from importer.memory.shape import Shape
from importer.memory.weights import Weights

# Shares of a card; the second is tried where the default is at least the first.
USUAL, FULLER_SHARE = 0.9, 0.95
BATCHED_LATENCY, BATCHED_THROUGHPUT = 2048, 16384  # tokens of a step, after vLLM's guide to optimisation
UNEVEN = 8  # sequences that one copy runs, where the copies together have to run as many

Caution = Literal["whole", "half", "least"]


@frozen
class LoadCase:
    """A model, a device and the requested settings; ``dtype`` is the engine's argument.

    ``caution``   whether the whole range stays free, half of it, or nothing: even less than the likely total,
                  where the start may fail.
    ``measured``  on this device, in place of the estimate of the settings that it covers.
    """

    config: Mapping[str, object]
    shape: Shape
    weights: Weights
    device: Device
    backend: str
    request: engine_keys.FitRequest
    context: int
    dtype: str = "auto"
    aim: Aim = NO_AIM
    caution: Caution = "whole"
    measured: Measured | None = None
    _fits: dict[tuple[int, Split, int], Fit] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _loads: dict[Split, Load] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def tokens(self) -> int:
        """Return the tokens of each of the sequences that are to be held at the same time."""
        return self.context if self.aim.context else min(TYPICAL, self.context)

    @property
    def pools(self) -> bool:
        """Return whether each text is read in one step, without steps of decoding after it."""
        return bool(self.request.get(engine_keys.RUNNER) == "pooling")

    @property
    def planned(self) -> bool:
        """Return whether the engine's cache, layouts and steps can be chosen."""
        return backends.of(self.backend).planned

    def fit(self, context: int, split: Split, sequences: int = 1) -> Fit:
        """Return the estimate at this context, with so many sequences in each copy."""
        key = (context, split, sequences)
        if key not in self._fits:
            load = replace(self.load(context, split), sequences=sequences)
            fit = estimate(self.shape, self.weights, load, self.backend)
            known = self.measured is not None and self.measured.difference(load) is None
            self._fits[key] = self.measured.applied(fit) if self.measured and known else fit
        return self._fits[key]

    def batched(self) -> int | None:
        """Return the tokens of one step that suit the goal; ``None`` leaves vLLM's own number."""
        if not self.planned or not self.device.is_card or self.pools:
            return None
        usual = pages.batched_default(self._plain_load(Split()))
        if self.aim.goal == "throughput":
            most = BATCHED_THROUGHPUT if usual > BATCHED_LATENCY else 2 * usual
            return most if most > usual else None
        waits = (self.aim.concurrency or 1) > 1 and not self.shape.tower  # a picture may need the larger step
        return BATCHED_LATENCY if self.aim.goal == "latency" and waits and usual > BATCHED_LATENCY else None

    def slots(self, split: Split) -> int | None:
        """Return the sequences that one copy has to run at the same time; ``None`` without a request.

        A few may all come to one copy, since nothing deals them out evenly. Pooled texts do not stay.
        """
        wanted = self.aim.concurrency if self.planned and not self.pools else None
        if wanted is None:
            return None
        return min(max(-(-wanted // split.copies), min(wanted, UNEVEN)), self._step_tokens(split))

    def running(self, split: Split) -> int:
        """Return the sequences that one copy runs at the same time: the set number, or vLLM's own."""
        load = self.load(self.context, split)
        return load.slots or min(pages.slots_default(load), self._step_tokens(split))

    def _step_tokens(self, split: Split) -> int:
        """Return the tokens of one step: vLLM runs no more sequences at the same time."""
        usual = pages.batched_default(self._plain_load(split))
        return self.request.count(engine_keys.BATCHED) or self.batched() or usual

    def _plain_load(self, split: Split) -> Load:
        """Return what decides on the engine's own defaults."""
        kind = self.device.kind
        return Load(
            self.context, memory=self.device.memory, shared=self.device.shared,
            device=kind if kind in {"cuda", "metal", "cpu"} else "rocm",
            capability=pages.compute_number(self.device.capability),
            version=self.request.version if self.planned else None,
            tensor_parallel=split.tensor, pipeline_parallel=split.pipeline,
        )  # fmt: skip

    def load(self, context: int, split: Split) -> Load:
        """Return the engine's settings; those that the document leaves open are the engine's defaults."""
        if split not in self._loads:
            self._loads[split] = self._load(split)
        return replace(self._loads[split], context=context)

    def _load(self, split: Split) -> Load:
        request, moves = self.request, engine_keys.memory_arguments(self.backend)
        drafts = request.get("engine_args.speculative_config.num_speculative_tokens")
        return replace(
            self._plain_load(split),
            slots=request.count(engine_keys.SLOTS) or self.slots(split),
            batched_tokens=request.count(engine_keys.BATCHED) or self.batched(),
            block_size=request.count("engine_args.block_size"),
            dtype=self.dtype,
            kv_dtype=str(request.get(engine_keys.KV_DTYPE) or "auto"),
            expert_parallel=split.tensor * split.data if split.experts else 1,
            context_parallel=self._parts(split),
            encoder_whole=request.get(engine_keys.ENCODER) == "data",
            rotating=request.count("engine_args.max_kv_size"),
            drafts=drafts if isinstance(drafts, int) else 0,
            prefix_caching=request.get("engine_args.enable_prefix_caching") is not False,
            pictures=request.get(engine_keys.BLIND) is not True,
            eager=moves.is_eager(request),
            offloaded=moves.offloaded(request),
            text_only=moves.loads_text_only(request),
            online_bits=moves.online_bits(request) if self.shape.scheme is None else None,
            adapters=self._adapters(),
            captured=self._captured(),
            uncounted=moves.not_counted(request),
        )

    def _adapters(self) -> int:
        """Return the ranks of all places of adapters together; vLLM's own are one place of rank 16."""
        if not self.planned or self.request.get("engine_args.enable_lora") is not True:
            return 0
        return (self.request.count(engine_keys.LORAS) or 1) * (self.request.count(engine_keys.RANK) or 16)

    def _captured(self) -> int | None:
        """Return the tokens of the largest CUDA graph that the user lists or names."""
        for key in engine_keys.CAPTURED:
            sizes = self.request.get(key)
            listed = [n for n in sizes if isinstance(n, int)] if isinstance(sizes, list) else []
            if number := (max(listed, default=0) or self.request.count(key)):
                return number
        return None

    def _parts(self, split: Split) -> int:
        """Return the cards that each keep a part of a sequence: the set number where vLLM divides it."""
        number = (self.request.count(engine_keys.PARTED) if self.planned else None) or 1
        return number if most(self.shape, split.tensor) % number == 0 else 1

    def pool(self, fit: Fit) -> dict[str, int] | None:
        """Return vLLM's cache: bytes of one block, and the blocks of one full sequence; else ``None``."""
        if not self.planned:
            return None
        pool = pages.pool(self.shape, fit.load)
        return {"block": pool.block, "blocks": pool.blocks(pages.kept(fit.load), pages.in_flight(fit.load))}

    def space(self, fit: Fit) -> int | None:
        """Return the bytes of the whole cache, where the request sets them or the number of blocks."""
        if not self.planned:
            return None
        blocks = self.request.count(engine_keys.BLOCKS)
        return (
            blocks * pages.pool(self.shape, fit.load).block
            if blocks
            else self.request.count(engine_keys.CACHE)
        )

    def splits(self) -> list[Split]:
        """Return the layouts that the request leaves open.

        Where none has the user's sizes without further stages, they stand alone, as often as there are cards.
        """
        found = layouts(self.config, self.shape, self.device, self.backend)
        fixed = [key for key in engine_keys.LAYOUT if self.request.is_fixed(key)]
        if not backends.of(self.backend).on_cards or not fixed:
            return found
        tensor, pipeline, data = (
            self.request.count(key) or 1
            for key in (engine_keys.TENSOR, engine_keys.PIPELINE, engine_keys.DATA)
        )
        exact = Split(tensor, pipeline, data, self.request.get(engine_keys.EXPERTS) is True)
        found = [
            s
            for s in found
            if all(getattr(s, engine_keys.PARTS[k]) == getattr(exact, engine_keys.PARTS[k]) for k in fixed)
        ]
        if not any(split.pipeline <= pipeline for split in found):
            servers = self.device.count // exact.cards if self.device.is_card else 1
            found.append(replace(exact, replicas=max(servers, 1)))
        return found

    def shares(self) -> tuple[float, ...]:
        """Return the shares of a card to try, the default one first."""
        key = engine_keys.memory_arguments(self.backend).share
        fixed = None if key is None else self.request.get(key)
        if isinstance(fixed, int | float) and not isinstance(fixed, bool) and 0 < fixed <= 1:
            return (float(fixed),)
        raised = self.planned and self.device.is_card and USUAL <= self.device.share < FULLER_SHARE
        raised = raised and self.shape.pictures is None  # their encoder needs what the share leaves
        raised = raised and self.most_share(self.load(self.context, Split())) >= FULLER_SHARE
        return (self.device.share, FULLER_SHARE) if raised else (self.device.share,)

    def most_share(self, load: Load) -> float:
        """Return the largest share of a card that is free at a start and leaves the rest its room."""
        memory = self.device.memory or 1
        most = min(rest.free_at_start(load), memory - rest.unshared(self.shape, load))
        if self.device.free is not None:
            most = min(most, self.device.free - rest.DRIVER)  # another program has the rest
        return max(most * 100 // memory / 100, 0.01)
