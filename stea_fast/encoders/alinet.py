"""AliNet with the settings of OpenEA: gated one-hop and two-hop neighbourhoods, and a relation loss."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch.nn.functional import leaky_relu, normalize
from torch.utils.checkpoint import checkpoint

from stea_fast.data.graph import KG
from stea_fast.encoders import _alinet_graph as structure
from stea_fast.encoders._distances import quadratic_forms, squared_distances
from stea_fast.encoders._graph import joint_triples
from stea_fast.encoders._ops import SparseMatrix, SymmetricPattern, joined_units
from stea_fast.encoders._reflection import segment_softmax
from stea_fast.encoders._training import TrainedEncoder
from stea_fast.encoders.base import Progress, check_state

BN = 1.001**-0.5  # batch normalisation in inference mode: mean 0, variance 1, epsilon 0.001
RELATION_PAIRS = 3000  # triples of the relation loss per step, or 50 per relation where that is one or less each
VALID = 0.2  # share of the pairs held out
GRAPH_PAIRS = ("known", "guessed")  # parts of the state besides the parameters
FIRST_AUGMENTED = 4  # number of the check that adds guessed pairs first


class AliNet(TrainedEncoder):
    """AliNet; begins anew at every `fit`.

    The original keeps only entities and triples with a counterpart, which gives away who has one. Here all
    entities and triples take part, and negatives come from all of them. Of the pairs given to `fit` the last
    fifth is held out to stop the training; a held-out pair is ranked among all targets, not the test targets.

    Args:
        kg1, kg2, seed, device, warm_start: see `TrainedEncoder`.
        dims: of the input and the two layers; embeddings have their sum as columns.
        margin, negative_weight, relation_weight: of the loss.
        negatives: per pair and, once they are near ones, per end.
        near: share of the other graph's entities that counts as near.
        check: epochs between two validations and two searches for near negatives.
        batch_size, learning_rate: of Adam.
        refit: after the stop, train anew for as many epochs on all pairs, those held out among them.
        augment: from the fourth check on, swap triples in the one-hop graph as if entities of no training pair
            that are nearest to each other were counterparts too (the "neighbourhood augmentation" of the AliNet
            paper, but among all entities and not only those of the test links).
    """

    first_epochs = 2000
    round_epochs = 2000
    recycles_memory = False  # a step makes matrices of many sizes: kept in pieces, they took 3.4 GB on DBP15K

    def __init__(
        self, kg1: KG, kg2: KG, *, seed: int = 0, device: str = "cpu", warm_start: bool = False,
        dims: tuple[int, int, int] = (500, 400, 300), margin: float = 1.5, negative_weight: float = 0.1,
        relation_weight: float = 0.01, negatives: int = 10, near: float = 0.02, check: int = 10,
        batch_size: int = 3000, learning_rate: float = 0.001, refit: bool = False, augment: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(kg1, kg2, seed=seed, device=device, warm_start=warm_start)
        self.dims, self.margin, self.check = dims, margin, check
        self.negative_weight, self.relation_weight = negative_weight, relation_weight
        self.negatives, self.near = negatives, near
        self.batch_size, self.learning_rate = batch_size, learning_rate
        self.refit, self.augment = refit, augment
        self.held_out = VALID
        self.triples = joint_triples(kg1, kg2)
        self.two_hop = SymmetricPattern(structure.two_hop(kg1, kg2), self.device)
        self._swap(np.zeros((0, 2), dtype=np.int64))
        self.restart()

    def _swap(self, pairs: np.ndarray) -> None:
        """Build what depends on the pairs [m, 2] known to be true: the swapped triples and the one-hop graph."""
        self.known = pairs
        triples = np.concatenate([self.triples, structure.swapped(self.triples, pairs, self.num_entities)])
        order = np.argsort(triples[:, 1], kind="stable")
        numbers = np.bincount(triples[:, 1])
        self.relation_counts = torch.from_numpy(numbers[numbers > 0]).to(self.device)
        self.ends = torch.from_numpy(triples[order][:, [0, 2]]).to(self.device)
        self._connect(np.zeros((0, 2), dtype=np.int64))

    def _connect(self, guessed: np.ndarray) -> None:
        """Build the one-hop graph, with the triples swapped of pairs known and of pairs [m, 2] guessed."""
        self.guessed = guessed
        pairs = np.concatenate([self.known, guessed])
        triples = np.concatenate([self.triples, structure.swapped(self.triples, pairs, self.num_entities)])
        self.one_hop = SparseMatrix(structure.one_hop(triples, self.num_entities), self.device)

    def _initial(self) -> dict[str, torch.Tensor]:
        d0, d1, d2 = self.dims
        weights = {
            "vectors": self.glorot(self.num_entities, d0),
            "one_1": self.glorot(d0, d1), "one_2": self.glorot(d1, d2),
            "two_own": self.glorot(d0, d0), "two_near": self.glorot(d0, d0), "two": self.glorot(d0, d1),
            "gate": self.glorot(d1, d1),
        }  # fmt: skip
        for name, width in (("one_1", d0), ("one_2", d1), ("two", d0), ("gate", d1)):
            weights[f"{name}_scale"] = torch.ones(width, device=self.device)
            weights[f"{name}_shift"] = torch.zeros(width, device=self.device)
        for name, width in (("one_1", d1), ("one_2", d2)):
            weights[f"{name}_bias"] = torch.zeros(width, device=self.device)
        return weights

    def _normed(self, name: str, x: torch.Tensor) -> torch.Tensor:
        return x * (BN * self.parameters[f"{name}_scale"]) + self.parameters[f"{name}_shift"]

    def _one_hop(self, name: str, x: torch.Tensor) -> torch.Tensor:
        """The product takes the normalisation in, so that no normed copy of x is kept for its gradient."""
        weight, scale, shift = (self.parameters[key] for key in (name, f"{name}_scale", f"{name}_shift"))
        product = torch.addmm(shift @ weight, x, BN * scale[:, None] * weight)
        return torch.tanh(self.one_hop @ product + self.parameters[f"{name}_bias"])

    def _two_hop(self, x: torch.Tensor) -> torch.Tensor:
        p, x = self.parameters, self._normed("two", x)
        own, near = (torch.tanh(quadratic_forms(x, p[name])) for name in ("two_own", "two_near"))
        rows, columns = self.two_hop.rows_on_device, self.two_hop.columns_on_device
        logits = leaky_relu(self.two_hop.values * (own.index_select(0, rows) + near.index_select(0, columns)), 0.2)
        weights = segment_softmax(logits[:, None], rows, len(x))[:, 0]
        return torch.tanh(self.two_hop.weighted_sum(weights, x @ p["two"]))

    def _levels(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The input and the two layers, [N, d] each, not normalised."""
        x = self.parameters["vectors"]
        hops = self._one_hop("one_1", x), self._two_hop(x)
        # Made again for its gradient: a product and some sums, instead of six matrices of the size of a layer.
        first = checkpoint(self._gated, *hops, use_reentrant=False, preserve_rng_state=False)
        return x, first, self._one_hop("one_2", first)

    def _gated(self, near: torch.Tensor, far: torch.Tensor) -> torch.Tensor:
        near, far = (self._normed("gate", y) for y in (near, far))
        gate = torch.relu(torch.tanh(far @ self.parameters["gate"]))
        return torch.tanh((1 - gate) * near + gate * far)

    def _embed(self) -> torch.Tensor:
        return self._joined(self._levels())

    @staticmethod
    def _joined(levels: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x, first, second = levels
        return joined_units((first, second, x))

    def fit(self, pairs: object, epochs: int, *, progress: Progress | None = None) -> None:
        """See `TrainedEncoder.fit`; with `refit` a second time, for as many epochs as the first took."""
        super().fit(pairs, epochs, progress=progress)
        if self.refit and len(self.valid):
            self.held_out = 0.0
            try:
                super().fit(pairs, self.trained, progress=progress)
            finally:
                self.held_out = VALID

    def _begin(self, pairs: torch.Tensor) -> None:
        held_out = int(self.held_out * len(pairs))
        self.train, self.valid = pairs[: len(pairs) - held_out], pairs[len(pairs) - held_out :]
        self._swap(self.train.cpu().numpy())
        self.optimizer = torch.optim.Adam(list(self.parameters.values()), lr=self.learning_rate)
        self.trained = 0
        self.scores: list[float] = []
        self.neighbors: tuple[torch.Tensor, torch.Tensor] | None = None

    def _epoch(self, pairs: torch.Tensor, epoch: int) -> torch.Tensor:
        if epoch and epoch % self.check == 0:
            self._check(epoch // self.check)
        loss = torch.zeros(())
        for _ in range(max(1, len(self.train) // self.batch_size)):
            chosen = self.draw(min(self.batch_size, len(self.train)), below=len(self.train))
            loss = self._step(self.loss(chosen))
        self.trained = epoch + 1
        return loss

    @torch.no_grad()
    def _check(self, number: int) -> None:
        """Stop when the held-out pairs have not improved twice in a row; otherwise find new near negatives."""
        levels = self._levels()
        if len(self.valid):
            self.scores.append(self._valid_hits(levels))
            recent = self.scores[-3:]
            # Without a single hit so far there is nothing that could have stopped to improve.
            if len(recent) == 3 and recent[0] >= recent[1] >= recent[2] and recent[0] > 0:
                raise StopIteration
        n1, h = self.kg1.num_entities, normalize(levels[2], dim=1)
        near1, near2 = (max(1, int(self.near * kg.num_entities)) for kg in (self.kg1, self.kg2))
        self.neighbors = (
            n1 + self._nearest(h[self.train[:, 0]], h[n1:], near2), self._nearest(h[self.train[:, 1]], h[:n1], near1)
        )  # fmt: skip
        if self.augment and number >= FIRST_AUGMENTED:
            self._connect(self._mutual(h).cpu().numpy())

    def _mutual(self, h: torch.Tensor) -> torch.Tensor:
        """[m, 2] entities of no training pair that are nearest to each other."""
        free = torch.ones(len(h), dtype=torch.bool, device=h.device)
        free[self.train.flatten()] = False
        entities = free.nonzero()[:, 0]
        left, right = entities[entities < self.kg1.num_entities], entities[entities >= self.kg1.num_entities]
        if not len(left) or not len(right):
            return torch.zeros((0, 2), dtype=torch.int64)
        there, back = self._nearest(h[left], h[right], 1)[:, 0], self._nearest(h[right], h[left], 1)[:, 0]
        mutual = back[there] == torch.arange(len(left), device=h.device)
        return torch.stack([left[mutual], right[there[mutual]]], dim=1)

    @staticmethod
    def _nearest(queries: torch.Tensor, others: torch.Tensor, k: int) -> torch.Tensor:
        """[m, k] numbers of the others nearest to every query."""
        return torch.cat([(block @ others.T).topk(k, dim=1)[1] for block in torch.split(queries, 1024)])

    def _valid_hits(self, levels: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> float:
        """Share of the held-out sources whose counterpart is nearest among all targets."""
        z = self._joined(levels)
        scores = z[self.valid[:, 0]] @ z[self.kg1.num_entities :].T
        own = scores.gather(1, self.valid[:, 1:] - self.kg1.num_entities)
        return float((scores >= own).sum(1).eq(1).float().mean())

    def _negative_pairs(self, chosen: torch.Tensor) -> torch.Tensor:
        """[k, 2] distinct pairs: random at first, then near ones of either end. True pairs are not taken out."""
        count, n1 = self.negatives * len(chosen), self.kg1.num_entities
        if self.neighbors is None:
            left, right = self.draw(count, below=n1), n1 + self.draw(count, below=self.kg2.num_entities)
        else:
            rows = chosen.repeat_interleave(self.negatives)
            near = [side[rows, self.draw(count, below=side.shape[1])] for side in self.neighbors]
            left, right = torch.cat([self.train[rows, 0], near[1]]), torch.cat([near[0], self.train[rows, 1]])
        keys = torch.unique(left * self.num_entities + right)
        return torch.stack([keys // self.num_entities, keys % self.num_entities], dim=1)

    def loss(self, chosen: torch.Tensor) -> torch.Tensor:
        """Of the training pairs with these numbers, with new negatives and relation triples."""
        z = self._embed()
        positive, negative = self.train[chosen], self._negative_pairs(chosen)
        ends, per_relation = self._relation_ends()
        parts = positive, negative, ends
        distances = squared_distances(z, torch.cat(parts))
        near, far, along = torch.split(distances, [len(part) for part in parts])
        pushed = (self.margin - far).relu().sum()
        relations = along.sum() + self._apart_from_direction(z, ends, per_relation)
        return near.sum() + self.negative_weight * pushed + self.relation_weight * relations

    def _relation_ends(self) -> tuple[torch.Tensor, int]:
        """[m, 2] heads and tails of triples drawn for every relation, and how many of each."""
        relations = len(self.relation_counts)
        per_relation = RELATION_PAIRS // max(relations, 1)
        per_relation = per_relation if per_relation > 1 else 50
        starts = self.relation_counts.cumsum(0) - self.relation_counts
        unit = torch.rand(relations, per_relation, generator=self.generator).to(self.device)
        places = (unit * self.relation_counts[:, None]).long().clamp_max(self.relation_counts[:, None] - 1)
        return self.ends[(starts[:, None] + places).flatten()], per_relation

    def _apart_from_direction(self, z: torch.Tensor, ends: torch.Tensor, per_relation: int) -> torch.Tensor:
        """Σ_r Σ_w ‖d_w − r̂‖² without Σ ‖d_w‖², d = h − t of the W triples of r, r̂ the direction of their mean d̄.

        As ‖r̂‖ = 1 this is W − 2W ‖d̄‖ for every relation, and d̄ is a sparse product: no row per triple is stored.
        """
        mean_of = structure.mean_differences(ends.cpu().numpy(), per_relation, self.num_entities)
        mean = SparseMatrix(mean_of, self.device) @ z
        return per_relation * (1 - 2 * (mean.square().sum(1) + 1e-12).sqrt()).sum()

    def state(self) -> dict[str, torch.Tensor]:
        """As `TrainedEncoder.state`, with the pairs that the one-hop graph was built from."""
        return {**super().state(), **{name: torch.from_numpy(getattr(self, name).copy()) for name in GRAPH_PAIRS}}

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        """Continue from `state()`, bit for bit."""
        pairs = {name: state.get(name, torch.empty(0, 2)) for name in GRAPH_PAIRS}
        check_state(state, {**self.state(), **pairs})
        self._swap(pairs["known"].cpu().numpy())
        self._connect(pairs["guessed"].cpu().numpy())
        super().load_state(state)
