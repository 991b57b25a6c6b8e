"""Everything that the result of a run of self-training depends on, beside the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from stea_fast._util import validate
from stea_fast._util.memory import size_in_bytes
from stea_fast._util.options import option_class, unknown_option
from stea_fast.encoders import absent
from stea_fast.refinement.config import METHODS as REFINEMENTS
from stea_fast.refinement.schedule import Schedule
from stea_fast.search.topk import ENGINES
from stea_fast.selftraining.methods import METHODS, SelfTrainingMethod, Stea, Structural


@option_class
@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """Which encoder a run uses, and the options it is made with.

    Args:
        name: "propagation", "dual_amn", "rrea", "alinet" or "gcn_align"; "none" for `sf.Structural`, which has none.
        options: Options of the encoder's class by name, such as `{"num_negatives": 4096}`; none by default.
        first_epochs: The number of epochs of the first training; the default, None, takes the encoder's own number.
        round_epochs: The number of epochs of every later training; the default, None, takes the encoder's own number.
        device: The torch device that it is trained on, such as "cpu" or "cuda".

    Raises:
        ValueError: A number of epochs is negative.
        TypeError: A number of epochs is not a whole number, or an option does not exist.

    Example:
        >>> import stea_fast as sf
        >>> sf.EncoderConfig(name="dual_amn", options={"num_negatives": 4096}).name
        'dual_amn'
    """

    name: str = "propagation"
    options: Mapping[str, Any] = field(default_factory=dict)
    first_epochs: int | None = None
    round_epochs: int | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be the name of an encoder, got {type(self.name).__name__}")
        if not isinstance(self.device, str):
            raise TypeError(f"device must be the name of a torch device, got {type(self.device).__name__}")
        if not isinstance(self.options, Mapping):
            raise TypeError(f"options must be a dictionary, got {type(self.options).__name__}")
        for name in ("first_epochs", "round_epochs"):
            if getattr(self, name) is not None:
                validate.count(getattr(self, name), name)


@option_class
@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How candidates are searched in every round; see `topk`.

    Args:
        k: The number of candidates that every entity gets.
        csls: The number of neighbours that CSLS averages over; 0 ranks by the plain similarity.
        engine: One of the engines of `topk`. "auto" searches exactly as far as `budget` goes, and by the approximate
            engine "partitioned" beyond it.
        dimensions: The number of dimensions to which embeddings are projected before they are searched; at most those
            that the encoder gives. The default, None, keeps all of them.
        budget: The largest number of products, sources · targets · dimensions of every pass, that an exact search of
            one round may take; it decides for "auto" only. The default, None, always searches exactly.

    Raises:
        ValueError: A number is outside its range, or there is no such engine.
        TypeError: A number is not whole, or an option does not exist.

    Example:
        >>> import stea_fast as sf
        >>> sf.SearchConfig(k=20, engine="partitioned").engine
        'partitioned'
    """

    k: int = 10
    csls: int = 10
    engine: str = "auto"
    dimensions: int | None = None
    budget: float | None = None

    def __post_init__(self) -> None:
        validate.count(self.k, "k", minimum=1)
        validate.count(self.csls, "csls")
        validate.choice(self.engine, "engine", ENGINES)
        if self.dimensions is not None:
            validate.count(self.dimensions, "dimensions", minimum=1)
        if self.budget is not None:
            validate.number(self.budget, "budget", minimum=0.0)


@option_class
@dataclass(frozen=True, kw_only=True)
class SelfTrainingConfig:
    """Everything that the result of a run of `SelfTraining` depends on, beside the data.

    The presets "structural", "fast", "large" and "full" are four of these; `dataclasses.replace` changes one.

    Args:
        encoder: Which encoder is used, and its options; propagation by default.
        search: How candidates are searched.
        method: How pseudo mappings are found: an `sf.Stea`, `sf.Structural`, `sf.Supervised`, `sf.SimilarityThreshold`,
            `sf.OneToOne` or `sf.MutualNearest`.
        rounds: How many times pseudo mappings are selected and trained on.
        validation: The share of the seeds, in [0, 0.9], that no training sees; β is fitted to them. They count as seeds
            everywhere else.
        tolerance: The run stops when at most this share of the pairs has changed since the round before.
        seed: The seed of the encoder's random numbers and of the choice of validation seeds.
        memory: The memory that the process may take, such as "8GB": a run that is estimated to need more keeps
            propagation's embeddings in temporary files and, where that does not suffice, is refused. The default, None,
            takes what the machine has left.

    Raises:
        ValueError: A number is outside its range.
        TypeError: A part is of the wrong type, or an option does not exist; the message names the nearest one.

    Example:
        >>> from dataclasses import replace
        >>> import stea_fast as sf
        >>> config = replace(sf.preset("fast"), rounds=2, search=sf.SearchConfig(k=20))
        >>> sf.SelfTrainingConfig.from_dict(config.to_dict()) == config
        True
    """

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    method: SelfTrainingMethod = field(default_factory=Stea)
    rounds: int = 4
    validation: float = 0.0
    tolerance: float = 0.0
    seed: int = 0
    memory: str | float | None = None

    def __post_init__(self) -> None:
        for name, kind in (("encoder", EncoderConfig), ("search", SearchConfig)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} must be an sf.{kind.__name__}, got {getattr(self, name)!r}")
        if not isinstance(self.method, tuple(METHODS.values())):
            raise TypeError(f"method must be an sf.Stea or one of the baselines, got {self.method!r}")
        if isinstance(self.method, Structural) != (self.encoder.name == absent.NAME):
            raise ValueError(
                f"sf.Structural, and no other method, goes with the encoder {absent.NAME!r}: "
                f"got {self.method.name!r} with the encoder {self.encoder.name!r}"
            )
        validate.count(self.rounds, "rounds", maximum=1000)
        validate.number(self.validation, "validation", minimum=0.0, maximum=0.9)
        validate.number(self.tolerance, "tolerance", minimum=0.0, maximum=1.0)
        validate.count(self.seed, "seed", maximum=2**63 - 1)
        if self.memory is not None:
            size_in_bytes(self.memory, "memory")

    def to_dict(self) -> dict[str, Any]:
        """Write the configuration as plain data, for JSON.

        Returns:
            Nested dictionaries and lists of numbers and strings, which `from_dict` reads.
        """
        plain: dict[str, Any] = _plain(self)
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SelfTrainingConfig:
        """Read a configuration that `to_dict` wrote.

        Args:
            values: The options by name; those that are left out have their defaults.

        Returns:
            The configuration, equal to the one that was written.

        Raises:
            TypeError: A name is unknown; the message gives the nearest one.
            ValueError: A number is outside its range.
        """
        given = _known(cls, values)
        if "encoder" in given:
            given["encoder"] = EncoderConfig(**_known(EncoderConfig, given["encoder"]))
        if "search" in given:
            given["search"] = SearchConfig(**_known(SearchConfig, given["search"]))
        if "method" in given:
            given["method"] = _named(given["method"], METHODS)
        return cls(**given)


def where_options_live() -> dict[str, str]:
    """How options that belong to a part of the configuration are written, for errors of whoever looks elsewhere."""
    parts = (
        (SelfTrainingConfig, "preset=dataclasses.replace(sf.preset('fast'), {}=...)"),
        (Stea, "method=sf.Stea({}=...)"),
        (SearchConfig, "search=sf.SearchConfig({}=...)"),
        (EncoderConfig, "encoder=sf.EncoderConfig({}=...)"),
    )
    return {
        **{field.name: written.format(field.name) for cls, written in parts for field in fields(cls)},
        "encoder_options": "encoder=sf.EncoderConfig(name=..., options=...)",
        "refine_options": "method=sf.Stea(refinement=...)",
        "schedule": "method=sf.Stea(refinement=sf.Schedule(...))",
    }


def _plain(value: Any) -> Any:
    """Nested dataclasses as dictionaries; a class among several alternatives says its name."""
    if is_dataclass(value) and not isinstance(value, type):
        name = getattr(value, "name", None) if not isinstance(value, EncoderConfig) else None
        alternatives: dict[type, str] = {cls: key for key, cls in {**REFINEMENTS, "schedule": Schedule}.items()}
        label = alternatives.get(type(value), name)
        parts = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return parts if label is None else {"name": label, **parts}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.generic):
        return value.item()  # JSON knows no numbers of NumPy
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _named(values: Mapping[str, Any] | str, classes: Mapping[str, Any]) -> Any:
    """The dataclass that a dictionary with a "name" stands for."""
    if isinstance(values, str):
        return classes[validate.choice(values, "method", tuple(classes))]()
    if not isinstance(values, Mapping):
        raise TypeError(f"a method must be a dictionary with a 'name', got {type(values).__name__}")
    cls = classes[validate.choice(values.get("name"), "name", tuple(classes))]
    given = _known(cls, {key: value for key, value in values.items() if key != "name"})
    for part in ("refinement", "structure"):
        if isinstance(given.get(part), Mapping):
            given[part] = _named(given[part], {**REFINEMENTS, "schedule": Schedule})
    return cls(**given)


def _known(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise TypeError(f"{cls.__name__} must be a dictionary, got {type(values).__name__}")
    names = [field.name for field in fields(cls)]
    for name in values:
        if name not in names:
            raise TypeError(unknown_option(cls.__name__, name, names))
    return dict(values)


def settings_of(config: SelfTrainingConfig) -> dict[str, Any]:
    """What a checkpoint compares: as `to_dict`, with options of foreign kinds as text."""
    settings = config.to_dict()
    del settings["encoder"]["device"], settings["memory"]  # a run may continue on another machine
    settings["encoder"]["options"] = {name: repr(value) for name, value in asdict(config.encoder)["options"].items()}
    return settings
