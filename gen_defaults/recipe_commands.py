"""The command of a recipe for one variant, one kind of node and one strategy.

The order of the parts, the later one counts, is that of the recipes' own site: model, variant, strategy with
its parallel sizes, recipe's change of the strategy, hardware, features. Source: ``command-synthesis.js`` of
vllm-project/recipes at 8959cf6.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gen_defaults.recipe_book import BASELINE, Book, Profile

TENSOR, DATA, PIPELINE = "--tensor-parallel-size", "--data-parallel-size", "--pipeline-parallel-size"
EXPERTS = "--enable-expert-parallel"
PLACEHOLDER = "$"  # begins the values that a person fills in: addresses of a cluster
FEW_NODES = 2  # of a deployment over several nodes, unless the recipe needs more cards
Flags = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Deployment:
    """One official deployment: the words behind ``vllm serve MODEL`` and the variables before it.

    ``role``  the head or a worker of several nodes, the prefill or the decode pool; empty for one node.
    ``precision``  of the variant's weights.
    """

    recipe: str
    variant: str
    model: str
    profile: Profile
    strategy: str
    nodes: int
    role: str
    flags: Flags
    env: Mapping[str, str]
    precision: str = ""

    @property
    def name(self) -> str:
        """Return the name of the deployment in a report."""
        place = f"{self.nodes}×{self.profile.name}" if self.nodes > 1 else self.profile.name
        return " ".join(filter(None, (self.recipe, self.variant, place, self.strategy, self.role)))


def deployments(
    book: Book, models: Collection[str], *, every: bool = False, features: bool = False
) -> Iterator[Deployment]:
    """Yield the official deployments of the models: each variant on its verified hardware.

    By default the strategy that the recipe recommends; with ``every`` all that it lists for the hardware.
    With ``features`` the ones that a person has to switch on are on.
    """
    for name, recipe, variant, facts, model in book.variants():
        if model not in models or "omni" in (recipe.get("meta", {}).get("tasks") or ()):
            continue
        for profile in book.hardware(recipe, facts):
            chosen = recommended(recipe, facts, profile)
            offered = _offered(recipe, profile) if every else [chosen]
            for strategy in offered:
                yield from _of(
                    book, (name, variant, model), recipe, facts, profile, strategy, features=features
                )


def recommended(recipe: Mapping[str, Any], variant: Mapping[str, Any], profile: Profile) -> str:
    """Return the strategy that a recipe starts with: its own, else tensor parallel.

    Over several nodes where one node's memory is too small for the variant.
    """
    listed = _offered(recipe, profile)
    default = str(recipe.get("default_strategy") or BASELINE)
    if nodes_of(variant, profile) > 1 and profile.scalable:
        sibling = default.replace("single_node_", "multi_node_")
        for name in (sibling, "multi_node_tp", "multi_node_dep", "multi_node_tep", "multi_node_tp_pp"):
            if name in listed:
                return name
    return default if default in listed else next((n for n in listed if n.startswith("single")), BASELINE)


def nodes_of(variant: Mapping[str, Any], profile: Profile) -> int:
    """Return the nodes whose memory holds the variant's least memory."""
    node = profile.gb * profile.count
    return max(1, -int(-float(variant.get("vram_minimum_gb") or 0) // node)) if node else 1


def _offered(recipe: Mapping[str, Any], profile: Profile) -> list[str]:
    gates = recipe.get("strategy_hardware") or {}
    listed = list(recipe.get("compatible_strategies") or (BASELINE,))
    listed += [name for name in gates if name not in listed and profile.value(gates[name]) == "supported"]
    return [name for name in listed if profile.value(gates.get(name)) != "unsupported"]


def _of(
    book: Book,
    names: tuple[str, str, str],
    recipe: Mapping[str, Any],
    variant: Mapping[str, Any],
    profile: Profile,
    strategy: str,
    *,
    features: bool,
) -> Iterator[Deployment]:
    """Yield the commands of one strategy: one, or one for each role."""
    plan = book.strategies.get(strategy, {})
    kind = plan.get("deploy_type", "single_node")
    least = recipe.get("strategy_min_gpus")
    cards = least if isinstance(least, int) else 0
    nodes = max(nodes_of(variant, profile), -(-cards // profile.count)) if kind != "single_node" else 1
    roles: Sequence[str] = ("",)
    if kind == "multi_node":
        nodes, roles = max(FEW_NODES, nodes), ("head", "worker")
    elif kind == "pd_cluster":
        roles = ("prefill", "decode")
    for role in roles:
        setting = _Setting(recipe, names[1], variant, profile, strategy, plan, nodes, role, features)
        flags = flagged(setting.words())
        env, precision = setting.variables(), str(variant.get("precision", ""))
        yield Deployment(*names, profile, strategy, nodes, role, flags, env, precision)


@dataclass(frozen=True, slots=True)
class _Setting:
    """All that a command depends on."""

    recipe: Mapping[str, Any]
    name: str
    variant: Mapping[str, Any]
    profile: Profile
    strategy: str
    plan: Mapping[str, Any]
    nodes: int
    role: str
    opted: bool

    @property
    def change(self) -> Mapping[str, Any]:
        """Return the recipe's change of the strategy."""
        found: Mapping[str, Any] = (self.recipe.get("strategy_overrides") or {}).get(self.strategy) or {}
        return found

    @property
    def pool(self) -> Mapping[str, Any]:
        """Return the strategy's part for the pool; the strategy itself where there are no pools."""
        found: Mapping[str, Any] = self.plan.get(self.role) or {} if self._pooled else self.plan
        return found

    @property
    def _pooled(self) -> bool:
        return self.plan.get("deploy_type") == "pd_cluster"

    def words(self) -> list[str]:
        """Return the words behind the model, the later one of a flag counts."""
        model = self.recipe.get("model", {})
        exact = (self.variant.get("hardware_overrides") or {}).get(self.profile.name) or {}
        own = self.change.get(self.role) or {} if self._pooled else self.change
        parts: list[Any] = [
            model.get("base_args"), self.variant.get("extra_args"), exact.get("extra_args"),
            self.pool.get("vllm_args"), [*self._parallel()], own.get("extra_args"), own.get("vllm_args"),
            *(part.get("extra_args") for part in self._hardware()), *self._features(),
        ]  # fmt: skip
        words = [str(word) for part in parts for word in part or ()]
        removed = {*(self.plan.get("remove_args") or ())}
        return [word for word in words if word not in removed]

    def variables(self) -> dict[str, str]:
        """Return the variables of the process, the later ones count."""
        model = self.recipe.get("model", {})
        exact = (self.variant.get("hardware_overrides") or {}).get(self.profile.name) or {}
        own = self.change.get(self.role) or {} if self._pooled else self.change
        parts = [
            model.get("base_env"), self.variant.get("extra_env"), exact.get("extra_env"),
            self.pool.get("env"),
            own.get("env"), own.get("extra_env"), *(part.get("extra_env") for part in self._hardware()),
        ]  # fmt: skip
        return {str(k): str(v) for part in parts for k, v in (part or {}).items()}

    def _hardware(self) -> Iterator[Mapping[str, Any]]:
        """Yield what the hardware adds: the strategy's own in place of the recipe's and the variant's."""
        replaced = self.profile.override(self.change.get("hardware_overrides"))
        if replaced:
            yield replaced
        else:
            yield self.profile.override(self.recipe.get("hardware_overrides"))
            yield self.profile.override(self.variant.get("hardware_overrides"))
        yield (self.change.get("hardware_overrides") or {}).get(self.profile.name) or {}

    def _features(self) -> Iterator[Iterable[str]]:
        by_hardware = self.profile.value(self.recipe.get("hardware_opt_in_features"))
        opted = {*(self.recipe.get("opt_in_features") or ()), *(by_hardware or ())}
        for key, feature in (self.recipe.get("features") or {}).items():
            if not isinstance(feature, Mapping) or (key in opted and not self.opted):
                continue
            only = feature.get("strategies")
            if only and self.strategy not in only:
                continue
            chosen = self._mode(key, feature) if feature.get("modes") else feature
            if chosen:
                other = self.profile.value(chosen.get("hardware_overrides")) or {}
                yield other.get("args") or chosen.get("args") or ()

    def _mode(self, key: str, feature: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the drafting method for the variant and the hardware; ``None`` where no mode is allowed."""
        modes = {
            name: mode
            for name, mode in feature["modes"].items()
            if self.name in (mode.get("variants") or (self.name,))
            and "unsupported" not in {(mode.get("hardware") or {}).get(k) for k in self._places()}
        }
        wanted = ((self.variant.get("default_modes") or {}).get(key), feature.get("default_mode"), *modes)
        return next((modes[name] for name in wanted if name in modes), None)

    def _places(self) -> tuple[str, str]:
        return self.profile.generation, self.profile.name

    def _parallel(self) -> Iterator[str]:
        """Yield the parallel sizes of the strategy."""
        count, nodes, follower = self.profile.count, self.nodes, self.role == "worker"
        flag = self.plan.get("parallel_flag") or TENSOR
        kind = self.plan.get("deploy_type", "single_node")
        if kind == "single_node":
            yield from (flag, str(self._single()))
        elif kind == "pd_cluster":
            yield from self._pool_sizes()
        elif flag == DATA or self.plan.get("parallelism") == "tp_dp":
            replicas = self.plan.get("parallelism") == "tp_dp"
            local = 1 if replicas else count
            if replicas:
                yield from (TENSOR, str(count))
            yield from (DATA, str(nodes if replicas else count * nodes))
            yield from ("--data-parallel-size-local", str(local), "--data-parallel-address", "$HEAD_IP")
            if follower:
                yield from ("--data-parallel-start-rank", str(local))
        else:
            staged = self.plan.get("parallelism") == "tp_pp"
            yield from (TENSOR, str(count if staged else count * nodes))
            if staged:
                yield from (PIPELINE, str(nodes))
            yield from (
                "--nnodes",
                str(nodes),
                "--node-rank",
                str(int(follower)),
                "--master-addr",
                "$HEAD_IP",
            )
            if follower:
                yield "--headless"

    def _pool_sizes(self) -> Iterator[str]:
        """Yield the sizes of one pool on a node of its own."""
        own = self.change.get(self.role) or {}
        ends = {name.rpartition("_")[2] for name in self.recipe.get("compatible_strategies") or ()}
        mode = own.get("parallelism") or self.pool.get("parallelism") or ("tp" if "tp" in ends else "dep")
        count = self.profile.count
        if mode == "dep":
            size = int(own.get("tp") or 1)
            if own.get("tp"):
                yield from (TENSOR, str(size))
            local = str(max(1, count // size))
            yield from (DATA, local, "--data-parallel-size-local", local, "--data-parallel-start-rank", "0")
            yield from ("--data-parallel-address", f"${self.role.upper()}_NODE_1", EXPERTS)
        else:
            yield from (TENSOR, str(count))
            if mode == "tep":
                yield EXPERTS

    def _single(self) -> int:
        """Return the size on one node: the declared one, one card where the weights fit, else all cards."""
        count = self.profile.count
        if self.strategy != BASELINE:
            return count
        for declared in (self.variant.get("tp"), self.change.get("tp")):
            size = declared if isinstance(declared, int) else self.profile.value(declared)
            if isinstance(size, int) and size > 0:
                return size if self.profile.generation == "cpu" else min(size, count)
        least = float(self.variant.get("vram_minimum_gb") or 0)
        return 1 if least and self.profile.gb and least <= self.profile.gb else count


def flagged(words: Sequence[str]) -> Flags:
    """Return flags with their values in one spelling, the last of each; ``None`` for a flag alone.

    Underscores in a flag's first part become hyphens; ``-cc`` is the compilation's configuration.
    """
    found: dict[str, str | None] = {}
    waiting = list(words)
    while waiting:
        name, equals, value = waiting.pop(0).partition("=")
        if not equals and " " in name:  # two words in one, as one recipe has them
            name, _, value = name.partition(" ")
            equals = " "
        if not name.startswith("-"):
            continue
        name = spelled(name)
        if not equals and waiting and not waiting[0].startswith("--") and not _short(waiting[0]):
            values = [waiting.pop(0)]
            while waiting and not waiting[0].startswith("-"):
                values.append(waiting.pop(0))
            value, equals = " ".join(values), " "
        found.pop(name, None)
        found[name] = value.strip() if equals else None
    return tuple(found.items())


def spelled(flag: str) -> str:
    """Return a flag as vLLM's parser reads it."""
    head, dot, rest = flag.partition(".")
    head = {"-cc": "--compilation-config", "-sc": "--speculative-config", "-ac": "--attention-config"}.get(
        head, head
    )
    short = {"-tp": TENSOR, "-dp": DATA, "-pp": PIPELINE, "-ep": EXPERTS}
    return short.get(head, head).replace("_", "-") + dot + rest


def _short(word: str) -> bool:
    return word.startswith("-") and word[1:2].isalpha()
