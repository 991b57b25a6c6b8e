"""Dual-AMN as STEA runs it: relational reflection on entities and on relations, hard negatives, no proxies."""

from __future__ import annotations

import torch

from stea_fast._util import validate
from stea_fast.data.graph import KG
from stea_fast.encoders import _negatives
from stea_fast.encoders._graph import JointGraph
from stea_fast.encoders._ops import SparseMatrix, dropout, side_by_side
from stea_fast.encoders._reflection import Reflection
from stea_fast.encoders._training import TrainedEncoder

LAYERS = 2


class ReflectionEncoder(TrainedEncoder):
    """Entities by what their neighbours and their relations are, reflected at the relations between them.

    Parameters: `entities` [N, d], `relations` [2R, d] and `attention` [layers, heads, 2, d]. Embeddings are
    [N, 2 · (layers + 1) · d]: for every level the part that began with entities and the one with relations.
    """

    activation: str
    heads: int  # 2: entities and relations have attention of their own; 1: they share it

    def __init__(
        self, kg1: KG, kg2: KG, *, seed: int, device: str, warm_start: bool, dim: int, dropout: float,
        learning_rate: float,
    ) -> None:  # fmt: skip
        super().__init__(kg1, kg2, seed=seed, device=device, warm_start=warm_start)
        self.dim, self.dropout_rate, self.learning_rate = dim, dropout, learning_rate
        self.graph = JointGraph.join(kg1, kg2)
        self.neighbor_mean = SparseMatrix(self.graph.neighbor_mean(), self.device)
        self.relation_mean = SparseMatrix(self.graph.relation_mean, self.device)
        self.members = SparseMatrix(self.graph.members, self.device)
        self.reflection = Reflection(self.graph, self.device)
        self.restart()

    def _initial(self) -> dict[str, torch.Tensor]:
        # Glorot for the attention over [x_i ; y_ij ; ρ_ij]; the part of x_i cancels in the softmax.
        limit = (6 / (3 * self.dim + 1)) ** 0.5
        return {
            "entities": self.uniform(self.num_entities, self.dim, limit=0.05),
            "relations": self.uniform(2 * self.graph.num_relations, self.dim, limit=0.05),
            "attention": self.uniform(LAYERS, self.heads, 2, self.dim, limit=limit),
        }

    def inputs(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """x [N, 2d] before φ, ρ [sets, d] and the attention [layers, 2, 2, d]."""
        relations, attention = self.parameters["relations"], self.parameters["attention"]
        means = self.neighbor_mean, self.relation_mean
        x = side_by_side(means, (self.parameters["entities"], relations))
        rho = self.members @ relations
        unit = rho * rho.square().sum(1, keepdim=True).clamp_min(1e-12).rsqrt()
        return x, unit, attention.expand(-1, 2, -1, -1)

    def _embed(self, rows: torch.Tensor | None = None) -> torch.Tensor:
        x, unit, attention = self.inputs()
        return self.reflection(x, unit, attention, self.activation, rows)

    def _begin(self, pairs: torch.Tensor) -> None:
        self.optimizer = torch.optim.RMSprop(list(self.parameters.values()), lr=self.learning_rate, alpha=0.9, eps=1e-7)


class DualAMN(ReflectionEncoder):
    """Dual-AMN without proxy matching, trained against all entities at once, or against a sample of them.

    Args:
        kg1, kg2, seed, device, warm_start: see `TrainedEncoder`.
        dim: d; embeddings have 6d columns.
        dropout: of the embeddings, one mask per step.
        gamma, scale: margin and λ of the loss (`_negatives`).
        batch_size: pairs per step.
        num_negatives: None takes all entities as negatives. A number takes so many, drawn anew for every step from
            both graphs, and the entities of the step's own pairs. The loss is most of the time of a step and is
            proportional to them.
        learning_rate: of RMSprop.
    """

    first_epochs = 20
    round_epochs = 5
    activation = "tanh"
    heads = 2

    def __init__(
        self, kg1: KG, kg2: KG, *, seed: int = 0, device: str = "cpu", warm_start: bool = True, dim: int = 128,
        dropout: float = 0.3, gamma: float = 1.0, scale: float = 30.0, batch_size: int = 1024,
        num_negatives: int | None = None, learning_rate: float = 0.005,
    ) -> None:  # fmt: skip
        self.gamma, self.scale, self.batch_size = gamma, scale, batch_size
        self.num_negatives = (
            None if num_negatives is None else validate.count(num_negatives, "num_negatives", minimum=1)
        )
        super().__init__(
            kg1, kg2, seed=seed, device=device, warm_start=warm_start, dim=dim, dropout=dropout,
            learning_rate=learning_rate,
        )  # fmt: skip

    def loss(self, pairs: torch.Tensor) -> torch.Tensor:
        """Of a batch [B, 2] of joint ids, with a new dropout mask and new negatives."""
        rows = None
        if self.num_negatives is not None and self.num_negatives < self.num_entities:
            rows, pairs = _negatives.sampled(pairs, self.permutation(self.num_entities)[: self.num_negatives])
        z = dropout(self._embed(rows), self.dropout_rate, self.generator)
        return _negatives.hard_negative_loss(z, pairs[:, 0], pairs[:, 1], self.gamma, self.scale)

    def _epoch(self, pairs: torch.Tensor, epoch: int) -> torch.Tensor:
        loss = torch.zeros(())
        for batch in torch.split(pairs[self.permutation(len(pairs))], self.batch_size):
            loss = self._step(self.loss(batch))
        return loss
