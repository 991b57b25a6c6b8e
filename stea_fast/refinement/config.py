"""The methods of `refine`: one frozen class each, whose fields are exactly the options that the method has."""

from __future__ import annotations

from dataclasses import dataclass

from stea_fast._backends.witnesses import WITNESSES
from stea_fast._util import validate
from stea_fast._util.options import option_class
from stea_fast.refinement.beliefs import KINDS

NORMALISATIONS = ("softmax", "minmax", "none")
BLANKETS = ("local", "full")


@option_class
@dataclass(frozen=True, kw_only=True)
class Joint:
    """Both directions at once: source and target compete for a pair, and matched neighbours propose new ones.

    A pair's probability is √(p_row·p_column) with p ∝ exp(β·score + λ·L), balanced over rows and columns
    (`stea_fast.refinement.joint` has the mathematics). The default method.

    Args:
        evidence_weight: λ, the weight of the evidence L beside the encoder's score.
        sweeps: at most this many rounds of relation alignment, proposals and evidence; fewer once the matched
            pairs settle.
        proposals: pairs that the matched neighbours of every entity may propose beyond the candidates; 0 for none.
            Their scores come from `candidates.score` where `topk` made the candidates; otherwise they count as no
            better than the last candidate of their lists.
        balance: iterations of Sinkhorn's balancing, which lets no entity give away or receive more than one
            counterpart's worth of probability; 0 for none.
        witnesses: "neighbour" takes all that is said about one pair of neighbours for one witness, of which the
            strongest statement counts; "statement" adds up all pairs of statements, as if they were independent.
        lone_witness: what the evidence of a pair counts for that has one witness only; 1 for its full weight.
            Witnesses that agree are worth more than their sum.
        beta: β, the inverse temperature of the scores; by default it is fitted to `holdout` links or chosen by the
            agreement of both directions, and the one of `topk(..., beta=...)` where that computed partition sums.
        k: use only the k best candidates of every row.

    Example:
        >>> import stea_fast as sf
        >>> sf.Joint(evidence_weight=8).proposals
        10
    """

    evidence_weight: float = 4.0
    sweeps: int = 4
    proposals: int = 10
    balance: int = 15
    witnesses: str = "neighbour"
    lone_witness: float = 0.5
    beta: float | None = None
    k: int | None = None

    def __post_init__(self) -> None:
        validate.number(self.evidence_weight, "evidence_weight", minimum=0.0)
        validate.count(self.sweeps, "sweeps", minimum=1, maximum=1000)
        validate.count(self.proposals, "proposals", maximum=1000)
        validate.count(self.balance, "balance", maximum=1000)
        validate.choice(self.witnesses, "witnesses", WITNESSES)
        validate.number(self.lone_witness, "lone_witness", minimum=0.0, maximum=1.0)
        _check_common(self.beta, self.k)


@option_class
@dataclass(frozen=True, kw_only=True)
class Product:
    """One direction at a time: q* ∝ q·exp(λ·L) over the candidates of every row, and nothing beyond them.

    Args:
        evidence_weight: λ, the weight of the evidence L beside the encoder's log-probability.
        sweeps: at most this many rounds of relation alignment and refinement; fewer once no best candidate changes.
        evidence: what speaks for a pair among its neighbours: "mutual" (pairs that are each other's best, with weight
            √(q·q')), "soft" (every candidate with its probability) or "argmax" (the best candidate, with weight 1).
            By default "mutual" where both directions are given, and "soft" where only one is.
        blanket: "local" (the factor of the entity) or "full" (and the factors of its neighbours).
        witnesses: "neighbour" takes all that is said about one pair of neighbours for one witness, of which the
            strongest statement counts; "statement" adds up all pairs of statements, as if they were independent.
        normalisation: how scores become probabilities: "softmax", "minmax", or "none" if they are probabilities.
        beta: the inverse temperature of the softmax; see `Joint`.
        k: use only the k best candidates of every row.

    Example:
        >>> import stea_fast as sf
        >>> sf.Product(evidence="soft").evidence_weight
        4.0
    """

    evidence_weight: float = 4.0
    sweeps: int = 4
    evidence: str | None = None
    blanket: str = "local"
    witnesses: str = "neighbour"
    normalisation: str = "softmax"
    beta: float | None = None
    k: int | None = None

    def __post_init__(self) -> None:
        validate.number(self.evidence_weight, "evidence_weight", minimum=0.0)
        validate.count(self.sweeps, "sweeps", minimum=1, maximum=1000)
        _check_directional(self.evidence, self.blanket, self.witnesses, self.normalisation)
        _check_common(self.beta, self.k)


@option_class
@dataclass(frozen=True, kw_only=True)
class Paper:
    """The step of the paper: q* ∝ exp(g), where g = 1 - exp(-L) is the compatibility with the neighbours.

    `Paper()` is exactly the paper's step: arg-max evidence, statements as witnesses, one sweep, the local factor. The
    fields are there for the paper's own ablations.

    Args:
        evidence, blanket, sweeps, witnesses: as in `Product`.
        normalisation: "softmax" or "minmax", the two that the paper compares, or "none".
        beta, k: as in `Product`.

    Example:
        >>> import stea_fast as sf
        >>> sf.Paper(normalisation="minmax").evidence
        'argmax'
    """

    evidence: str = "argmax"
    blanket: str = "local"
    sweeps: int = 1
    witnesses: str = "statement"
    normalisation: str = "softmax"
    beta: float | None = None
    k: int | None = None

    def __post_init__(self) -> None:
        validate.count(self.sweeps, "sweeps", minimum=1, maximum=1000)
        _check_directional(self.evidence, self.blanket, self.witnesses, self.normalisation)
        _check_common(self.beta, self.k)


DirectionalMethod = Product | Paper
Method = Joint | Product | Paper
METHODS: dict[str, type[Joint] | type[Product] | type[Paper]] = {"joint": Joint, "product": Product, "paper": Paper}
DEFAULT_METHOD = "joint"


def method_of(method: str | Method) -> Method:
    """The method itself, or the one that a name stands for, with its defaults."""
    if isinstance(method, str):
        return METHODS[validate.choice(method, "method", tuple(METHODS))]()
    if not isinstance(method, tuple(METHODS.values())):
        names = ", ".join(map(repr, METHODS))
        raise TypeError(f"method must be one of {names}, or an sf.Joint, sf.Product or sf.Paper; got {method!r}")
    return method


def where_options_live(keyword: str = "method") -> dict[str, str]:
    """How options that belong to a method are written, for errors of whoever looks elsewhere.

    `keyword` is the one by which the method is given.
    """
    homes = {
        name: f"{keyword}=sf.{cls.__name__}({name}=...)"
        for cls in (Paper, Product, Joint)  # of a name that several have, the default method's
        for name in cls.__dataclass_fields__
    }
    return {
        **homes,
        "paper": f"{keyword}='paper'",
        "combine": f"{keyword}='joint', 'product' or 'paper'",
        "calibrate": f"{keyword}=sf.Product(normalisation=...)",
        "log_partition": "sf.TopK(forward, backward, log_partition=..., beta=...) as the candidates",
    }


def _check_directional(evidence: str | None, blanket: str, witnesses: str, normalisation: str) -> None:
    if evidence is not None:
        validate.choice(evidence, "evidence", KINDS)
    validate.choice(blanket, "blanket", BLANKETS)
    validate.choice(witnesses, "witnesses", WITNESSES)
    validate.choice(normalisation, "normalisation", NORMALISATIONS)


def _check_common(beta: float | None, k: int | None) -> None:
    if beta is not None:
        validate.number(beta, "beta", minimum=0.0)
    if k is not None:
        validate.count(k, "k", minimum=1)
