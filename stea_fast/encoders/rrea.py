"""RREA: relational reflection with one attention for entities and relations, and random negatives."""

from __future__ import annotations

import torch

from stea_fast.data.graph import KG
from stea_fast.encoders._ops import dropout
from stea_fast.encoders._ranking import l1_ranking_loss
from stea_fast.encoders.dual_amn import ReflectionEncoder


class RREA(ReflectionEncoder):
    """RREA with the sizes of the original; STEA ran it with dim = 50 for 500 epochs.

    One epoch is one step: the pairs are repeated to N rows, and each row gets a random negative for either end.

    Args:
        kg1, kg2, seed, device, warm_start: see `TrainedEncoder`.
        dim: d; embeddings have 6d columns.
        dropout: of the embeddings, one mask per step.
        margin: of the L1 distances.
        learning_rate: of RMSprop.
    """

    first_epochs = 1200
    round_epochs = 100
    activation = "relu"
    heads = 1

    def __init__(
        self, kg1: KG, kg2: KG, *, seed: int = 0, device: str = "cpu", warm_start: bool = True, dim: int = 100,
        dropout: float = 0.3, margin: float = 3.0, learning_rate: float = 0.005,
    ) -> None:  # fmt: skip
        self.margin = margin
        super().__init__(
            kg1, kg2, seed=seed, device=device, warm_start=warm_start, dim=dim, dropout=dropout,
            learning_rate=learning_rate,
        )  # fmt: skip

    def draw_triplets(self, pairs: torch.Tensor) -> torch.Tensor:
        """[2N, 3]: every pair about equally often, (l, r, any) and (r, l, any)."""
        n = self.num_entities
        left, right = pairs.repeat(n // len(pairs) + 1, 1)[self.permutation((n // len(pairs) + 1) * len(pairs))[:n]].T
        negatives = self.draw(2, n)
        return torch.cat(
            [torch.stack([left, right, negatives[0]], dim=1), torch.stack([right, left, negatives[1]], dim=1)]
        )

    def loss(self, triplets: torch.Tensor) -> torch.Tensor:
        """Mean over the N rows, with a new dropout mask."""
        z = dropout(self._embed(), self.dropout_rate, self.generator)
        return l1_ranking_loss(z, triplets, self.margin) / self.num_entities

    def _epoch(self, pairs: torch.Tensor, epoch: int) -> torch.Tensor:
        return self._step(self.loss(self.draw_triplets(pairs)))
