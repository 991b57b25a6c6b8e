"""GCN-Align, structure only: two graph convolutions without weights over embeddings that are learnt."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import coo_array

from stea_fast.data.graph import KG
from stea_fast.encoders._graph import Entries, joint_triples
from stea_fast.encoders._ops import SparseMatrix
from stea_fast.encoders._ranking import l1_ranking_loss
from stea_fast.encoders._training import TrainedEncoder


class GCNAlign(TrainedEncoder):
    """Z = Â relu(Â V / ‖V‖), Â weighted by how well a relation identifies its ends; begins anew at every `fit`.

    Args:
        kg1, kg2, seed, device, warm_start: see `TrainedEncoder`.
        dim: columns of the embeddings.
        margin: of the L1 distances.
        negatives: per pair and side.
        redraw: epochs between new negatives.
        learning_rate: of plain gradient descent.
    """

    first_epochs = 250
    round_epochs = 250

    def __init__(
        self, kg1: KG, kg2: KG, *, seed: int = 0, device: str = "cpu", warm_start: bool = False, dim: int = 200,
        margin: float = 3.0, negatives: int = 5, redraw: int = 10, learning_rate: float = 20.0,
    ) -> None:  # fmt: skip
        super().__init__(kg1, kg2, seed=seed, device=device, warm_start=warm_start)
        self.dim, self.margin, self.negatives, self.redraw = dim, margin, negatives, redraw
        self.learning_rate = learning_rate
        weights = _adjacency(joint_triples(kg1, kg2), self.num_entities, kg1.num_relations + kg2.num_relations)
        self.adjacency = SparseMatrix(weights, self.device)
        self.restart()

    def _initial(self) -> dict[str, torch.Tensor]:
        vectors = torch.empty(self.num_entities, self.dim)
        deviation = self.num_entities**-0.5
        torch.nn.init.trunc_normal_(vectors, std=deviation, a=-2 * deviation, b=2 * deviation, generator=self.generator)
        return {"vectors": vectors.to(self.device)}

    def _embed(self) -> torch.Tensor:
        vectors = self.parameters["vectors"]
        rows = vectors / vectors.norm(dim=1, keepdim=True).clamp_min(1e-9)
        return self.adjacency @ torch.relu(self.adjacency @ rows)

    def _begin(self, pairs: torch.Tensor) -> None:
        self.optimizer = torch.optim.SGD(list(self.parameters.values()), lr=self.learning_rate)

    def draw_triplets(self, pairs: torch.Tensor) -> torch.Tensor:
        """[2 · negatives · m, 3]: (l, r, any) and (r, l, any)."""
        ends = torch.cat([pairs, pairs.flip(1)]).repeat_interleave(self.negatives, 0)
        return torch.cat([ends, self.draw(len(ends), 1)], dim=1)

    def loss(self, triplets: torch.Tensor) -> torch.Tensor:
        """Mean over the triplets."""
        return l1_ranking_loss(self._embed(), triplets, self.margin) / len(triplets)

    def _epoch(self, pairs: torch.Tensor, epoch: int) -> torch.Tensor:
        if epoch % self.redraw == 0:
            self.triplets = self.draw_triplets(pairs)
        return self._step(self.loss(self.triplets))


def _adjacency(triples: np.ndarray, num_entities: int, num_relations: int) -> Entries:
    """Â = D^−½ (M + I) D^−½ with D the COLUMN sums: M[h, t] += max(ifun(r), .3), M[t, h] += max(fun(r), .3)."""
    heads, relations, tails = triples.T
    counts = np.maximum(np.bincount(relations, minlength=num_relations), 1)
    fun, ifun = (
        np.bincount(np.unique(np.stack([relations, ends]), axis=1)[0], minlength=num_relations) / counts
        for ends in (heads, tails)
    )
    proper = heads != tails
    heads, relations, tails = heads[proper], relations[proper], tails[proper]
    own = np.arange(num_entities)
    values = np.concatenate([np.maximum(ifun[relations], 0.3), np.maximum(fun[relations], 0.3), np.ones(num_entities)])
    places = np.concatenate([heads, tails, own]), np.concatenate([tails, heads, own])
    matrix = coo_array((values, places), shape=(num_entities, num_entities)).tocsr()
    scale = matrix.sum(axis=0) ** -0.5
    rows = np.repeat(own, np.diff(matrix.indptr))
    data = matrix.data * scale[rows] * scale[matrix.indices]
    return Entries(
        matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), data.astype(np.float32), num_entities
    )
