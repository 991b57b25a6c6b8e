"""The exact result of one pass, and how it follows from an engine's candidates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from stea_fast.search.embeddings import Embeddings
from stea_fast.search.exact import EXTRA_CANDIDATES, SearchRequest, SearchResult, exact_ranking, floor_of
from stea_fast.types import Array


@dataclass(frozen=True, eq=False)
class Ranked:
    """The best of both directions: indices and float64 scores [n, keep], -1 and -inf where there are none.

    Attributes:
        log_partition: float64 [n1] and [n2], if asked for.
        candidates: what the ranking was made of, if it was made of an engine's candidates.
    """

    forward: tuple[Array, Array]
    backward: tuple[Array, Array]
    log_partition: tuple[Array, Array] | None = None
    candidates: SearchResult | None = None


class CandidateEngine(ABC):
    """An engine that finds candidates in single precision; see `stea_fast.search.engines`.

    Attributes:
        name: as `topk` takes it.
        is_exact: whether rows of which it cannot be sure are searched again.
    """

    name: str
    is_exact = True

    @abstractmethod
    def search(self, request: SearchRequest) -> SearchResult:
        """The `keep` best of both directions."""

    @abstractmethod
    def products(self, queries: Embeddings, keys: Embeddings, indices: Array, distance: bool) -> Array:
        """Inner products, or squared distances, in double precision."""

    def rank(self, request: SearchRequest, known: Ranked | None = None) -> Ranked:
        """The `keep` best of both directions, exactly.

        Args:
            request: what is asked for; it has no floors.
            known: the result for another scoring of the same sides, which may save work.
        """
        side1, side2, scoring, keep = request.side1, request.side2, request.scoring, request.keep
        floors = None, None
        if known is not None and known.candidates is not None:
            floors = (
                floor_of(known.candidates.forward, side1, side2, scoring, keep + EXTRA_CANDIDATES),
                floor_of(known.candidates.backward, side2, side1, scoring.swapped(), keep + EXTRA_CANDIDATES),
            )
        found = self.search(replace(request, keep=keep + EXTRA_CANDIDATES, floors=floors))
        settle = self.is_exact
        return Ranked(
            exact_ranking(found.forward, side1, side2, scoring, keep, self.products, settle=settle),
            exact_ranking(found.backward, side2, side1, scoring.swapped(), keep, self.products, settle=settle),
            found.log_partition,
            found,
        )
