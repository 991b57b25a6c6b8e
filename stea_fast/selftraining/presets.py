"""The configurations that have a name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stea_fast._util import validate
from stea_fast.data.pair import Pair
from stea_fast.encoders import NAMES, absent
from stea_fast.selftraining.config import EncoderConfig, SearchConfig, SelfTrainingConfig
from stea_fast.selftraining.methods import SelfTrainingMethod, Stea, Structural, method_named

# An eighth of the original relation dimensions: an eighth of the time of the search, most of the quality. Fewer where
# the embeddings of both graphs would take more than these bytes, of which DBP15K's take a quarter.
STARTER = EncoderConfig(name="propagation", options={"relation_dim": 64, "embedding_bytes": 0.7e9})

AGREEING = Stea(two_views=True)

LARGE_ENTITIES = 60_000  # of one graph: with more, "large" is taken where nothing else is asked for
LARGE_EMBEDDING_BYTES = 0.75e9  # of both graphs: with more entities "large" has fewer dimensions
MOST_PRODUCTS = 2e13  # of an exact search of one round of "large"

PRESETS: dict[str, SelfTrainingConfig] = {
    "structural": SelfTrainingConfig(encoder=EncoderConfig(name=absent.NAME), method=Structural(), rounds=0),
    "fast": SelfTrainingConfig(encoder=STARTER, method=AGREEING, rounds=3),
    "large": SelfTrainingConfig(
        encoder=replace(STARTER, options={**STARTER.options, "embedding_bytes": LARGE_EMBEDDING_BYTES}),
        method=AGREEING,
        search=SearchConfig(budget=MOST_PRODUCTS),
        rounds=2,
    ),
    "full": SelfTrainingConfig(
        # A fifth of DBP15K's entities as negatives: a cheaper step. Twice the usual pairs in a step, which goes
        # further: half as many steps. Both have the same Hit@1 at 1 % seeds (bench/NOTES.md).
        encoder=EncoderConfig(
            name="dual_amn", options={"num_negatives": 8192, "batch_size": 2048, "learning_rate": 0.007}
        ),
        method=replace(AGREEING, start_rounds=3, first_epochs=5),
        rounds=5,
    ),
}


def preset(name: str, *, device: str = "cpu") -> SelfTrainingConfig:
    """Look up the configuration behind the name of a preset, to read it or to change it.

    Args:
        name: "structural" (no encoder: seeds spread over the graphs), "fast" (propagation in 1,024 dimensions, fewer
            for graphs of more than 170,000 entities, 3 rounds), "large" (structure first, then propagation for what is
            still open) or "full" (three rounds of propagation, then three of Dual-AMN with 8,192 negatives drawn for
            every step of 2,048 pairs).
        device: The torch device that the encoder is trained on, such as "cpu" or "cuda".

    Returns:
        A `SelfTrainingConfig`. Change it by `dataclasses.replace`, and give it to `SelfTraining` or `align` as
        `preset=`.

    Raises:
        ValueError: There is no preset of that name.

    Example:
        >>> import stea_fast as sf
        >>> sf.preset("fast").rounds
        3
    """
    return configured(PRESETS[validate.choice(name, "preset", tuple(PRESETS))], device=device)


def usual_preset(pair: Pair, *, has_seeds: bool) -> str:
    """The name of the preset that is taken where none is asked for.

    Without seeds, names and values lie all over the graphs, and an encoder adds little to what spreads from them.
    """
    if not has_seeds:
        return "structural"
    return "large" if max(pair.kg1.num_entities, pair.kg2.num_entities) > LARGE_ENTITIES else "fast"


def configured(
    config: str | SelfTrainingConfig,
    *,
    encoder: object = None,
    method: str | SelfTrainingMethod | None = None,
    search: SearchConfig | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    device: str | None = None,
    memory: str | float | None = None,
) -> SelfTrainingConfig:
    """A preset, by its name or as it is, with some of its parts replaced; None keeps a part.

    Of an encoder or method that is given by name, and that the preset uses as well, the preset's options hold. An
    encoder that is neither a name nor a configuration is somebody's own object: the configuration notes its class, and
    keeps the preset's epochs.
    """
    chosen = preset(config) if isinstance(config, str) else config
    if not isinstance(chosen, SelfTrainingConfig):
        raise TypeError(f"preset must be a name or an sf.SelfTrainingConfig, got {type(config).__name__}")
    changes: dict[str, Any] = {"search": search, "rounds": rounds, "seed": seed, "memory": memory}
    if isinstance(encoder, EncoderConfig):
        changes["encoder"] = encoder
    elif isinstance(encoder, str):
        if validate.choice(encoder, "encoder", NAMES) != chosen.encoder.name:
            changes["encoder"] = EncoderConfig(name=encoder, device=chosen.encoder.device)
    elif encoder is not None:
        changes["encoder"] = replace(chosen.encoder, name=type(encoder).__name__, options={})
    if isinstance(method, str):
        changes["method"] = chosen.method if method == chosen.method.name else method_named(method)
    else:
        changes["method"] = method
    if isinstance(changes["method"], Structural) and encoder is None:
        changes["encoder"] = EncoderConfig(name=absent.NAME)
    made = replace(chosen, **{name: value for name, value in changes.items() if value is not None})
    return made if device is None else replace(made, encoder=replace(made.encoder, device=device))
