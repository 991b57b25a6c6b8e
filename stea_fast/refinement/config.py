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
    """Refine both directions at once: sources and targets compete for each other, and matched neighbours propose pairs.

    A pair's probability is √(p_row·p_column), where each p ∝ exp(β·score + λ·L) is normalised over everything that the
    row or the column could be, and both are balanced against each other. `stea_fast.refinement.joint` has the
    mathematics. This is the default method of `refine`.

    Args:
        evidence_weight: The weight λ ≥ 0 of the evidence L beside the encoder's score.
        sweeps: The largest number of sweeps. A sweep aligns the relations, collects proposals and computes the evidence
            of all pairs; the refinement stops earlier once the matched pairs settle.
        proposals: How many pairs the matched neighbours of an entity may propose beyond its candidates; 0 turns
            proposals off. Proposed pairs are scored by `candidates.score` if `topk` made the candidates. Otherwise they
            count as no better than the last candidate of their lists.
        least_proposal: The evidence L that a proposed pair must reach; 0 takes every proposal.
        balance: How many of Sinkhorn's iterations balance rows and columns, so that no entity gives away or receives
            more than one counterpart's worth of probability; 0 turns balancing off.
        witnesses: "neighbour" takes all that is said about one pair of neighbours for one witness, of which the
            strongest statement counts; "statement" adds up all pairs of statements, as if they were independent.
        lone_witness: The share in [0, 1] of its evidence that counts for a pair with a single witness; 1 counts all of
            it. Witnesses that agree are worth more than their sum.
        start_sweeps: The number of first sweeps in which relations that meet at seeds are taken to be alike, as far as
            nothing else is known of them: from few seeds nothing may spread otherwise. 0 leaves that out.
        damping: The share in [0, 1) that a pair keeps of the probability that it had in the sweep before.
        beta: The inverse temperature β of the scores. The default, None, takes the β of `topk(..., beta=...)` if the
            candidates come with partition sums, fits it to the `holdout` links of `refine` if there are any, and
            otherwise chooses it so that the probabilities claim what the two directions agree on.
        k: How many of the best candidates of every row are used; the default, None, uses all of them.

    Raises:
        ValueError: An option is outside its range.
        TypeError: An option does not exist, or is not a number.

    Example:
        >>> import stea_fast as sf
        >>> sf.Joint(evidence_weight=8).proposals
        10
    """

    evidence_weight: float = 4.0
    sweeps: int = 10
    proposals: int = 10
    least_proposal: float = 0.0
    balance: int = 15
    witnesses: str = "neighbour"
    lone_witness: float = 1.0
    start_sweeps: int = 4
    damping: float = 0.0
    beta: float | None = None
    k: int | None = None

    def __post_init__(self) -> None:
        validate.number(self.evidence_weight, "evidence_weight", minimum=0.0)
        validate.count(self.sweeps, "sweeps", minimum=1, maximum=1000)
        validate.count(self.proposals, "proposals", maximum=1000)
        validate.number(self.least_proposal, "least_proposal", minimum=0.0)
        validate.count(self.balance, "balance", maximum=1000)
        validate.choice(self.witnesses, "witnesses", WITNESSES)
        validate.number(self.lone_witness, "lone_witness", minimum=0.0, maximum=1.0)
        validate.count(self.start_sweeps, "start_sweeps", maximum=1000)
        validate.number(self.damping, "damping", minimum=0.0, maximum=0.99)
        _check_common(self.beta, self.k)


@option_class
@dataclass(frozen=True, kw_only=True)
class Product:
    """Refine one direction at a time: q* ∝ q·exp(λ·L) over the candidates of every row, and nothing beyond them.

    Args:
        evidence_weight: The weight λ ≥ 0 of the evidence L beside the encoder's log-probability.
        sweeps: The largest number of sweeps. A sweep aligns the relations and refines all rows; the refinement stops
            earlier once no row changes its best candidate.
        evidence: Which guesses for the neighbours count: "mutual" counts pairs that are each other's best, with weight
            √(q·q'); "soft" counts every candidate with its probability; "argmax" counts the best candidate with
            weight 1. The default, None, is "mutual" if candidates in both directions are given, and "soft" otherwise.
        blanket: "local" uses the factor of the entity itself, "full" adds the factors of its neighbours.
        witnesses: "neighbour" takes all that is said about one pair of neighbours for one witness, of which the
            strongest statement counts; "statement" adds up all pairs of statements, as if they were independent.
        normalisation: How scores become probabilities: "softmax", "minmax", or "none" if they are probabilities.
        beta: The inverse temperature β of the softmax. The default, None, chooses it as for `Joint`.
        k: How many of the best candidates of every row are used; the default, None, uses all of them.

    Raises:
        ValueError: An option is outside its range, or not among its choices.
        TypeError: An option does not exist, or is of the wrong type.

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
    """Refine as the paper does: q* ∝ exp(g), where g = 1 - exp(-L) is the compatibility with the neighbours.

    `Paper()` is exactly the step of the paper: arg-max evidence, statements as witnesses, one sweep and the local
    factor. The options are there for the paper's own ablations.

    Args:
        evidence: Which guesses for the neighbours count: "argmax", "soft" or "mutual"; see `Product`.
        blanket: "local" uses the factor of the entity itself, "full" adds the factors of its neighbours.
        sweeps: The largest number of sweeps of relation alignment and refinement.
        witnesses: "neighbour" takes all that is said about one pair of neighbours for one witness, of which the
            strongest statement counts; "statement" adds up all pairs of statements, as if they were independent.
        normalisation: "softmax" or "minmax", the two that the paper compares, or "none" if scores are probabilities.
        beta: The inverse temperature β of the softmax. The default, None, chooses it as for `Joint`.
        k: How many of the best candidates of every row are used; the default, None, uses all of them.

    Raises:
        ValueError: An option is outside its range, or not among its choices.
        TypeError: An option does not exist, or is of the wrong type.

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
