"""What the trained encoders share: the loop over epochs, randomness of their own, and their state."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from contextlib import nullcontext

import numpy as np
import torch

from stea_fast._util import memory, validate
from stea_fast._util.devices import usable_device
from stea_fast.data.graph import KG
from stea_fast.encoders._ops import flushed_denormals
from stea_fast.encoders.base import Progress, TrainingError, check_pairs, check_seed, check_state


class TrainedEncoder(abc.ABC):
    """An encoder with parameters. Every random number comes from its own generator, never from torch's global one.

    The generator draws on the host, wherever the encoder is trained: a seed means the same numbers on every device.

    Args:
        kg1, kg2: the graphs.
        seed: of the initial weights and of everything drawn while training.
        device: "cpu", "cuda" …
        warm_start: whether a later `fit` continues from the weights, or begins anew from the seed.
    """

    first_epochs: int
    round_epochs: int
    recycles_memory = True  # keeps what a step frees for the next: faster, but memory in pieces grows the process

    def __init__(self, kg1: KG, kg2: KG, *, seed: int, device: str, warm_start: bool) -> None:
        self.kg1, self.kg2 = kg1, kg2
        self.seed = check_seed(seed)
        self.device = usable_device(device)
        self.warm_start = warm_start
        self.num_entities = kg1.num_entities + kg2.num_entities
        self.generator = torch.Generator()
        self.parameters: dict[str, torch.Tensor] = {}
        self.optimizer: torch.optim.Optimizer

    @abc.abstractmethod
    def _initial(self) -> dict[str, torch.Tensor]:
        """New parameters, drawn from the generator."""

    @abc.abstractmethod
    def _begin(self, pairs: torch.Tensor) -> None:
        """Prepare for training on pairs [m, 2] in joint ids: a new optimizer among others."""

    @abc.abstractmethod
    def _epoch(self, pairs: torch.Tensor, epoch: int) -> torch.Tensor:
        """Train for one epoch; returns the last loss. Raises StopIteration to end the training early."""

    @abc.abstractmethod
    def _embed(self) -> torch.Tensor:
        """[N, d], evaluation mode."""

    def restart(self) -> None:
        """Forget everything learnt: the state after construction."""
        self.generator.manual_seed(self.seed)
        self.parameters = {name: value.requires_grad_() for name, value in self._initial().items()}

    def fit(self, pairs: object, epochs: int, *, progress: Progress | None = None) -> None:
        """Train on pairs (m, 2) of a kg1 and a kg2 entity, with a new optimizer. See `base.Encoder`."""
        array = check_pairs(pairs, self.kg1, self.kg2) + np.array([0, self.kg1.num_entities])
        total = validate.count(epochs, "epochs", minimum=1)
        if not self.warm_start:
            self.restart()
        joint = torch.from_numpy(array).to(self.device)
        with flushed_denormals(), memory.recycled() if self.recycles_memory else nullcontext():
            self._begin(joint)
            for epoch in range(total):
                try:
                    loss = float(self._epoch(joint, epoch))
                except StopIteration:
                    break
                if loss != loss or abs(loss) == float("inf"):
                    raise TrainingError(
                        f"the loss became {loss} in epoch {epoch + 1} of {total} ({type(self).__name__}, "
                        f"{len(joint)} pairs); a smaller learning_rate may help"
                    )
                if progress is not None:
                    progress(epoch + 1, total)

    @torch.no_grad()
    def embeddings(self) -> tuple[torch.Tensor, torch.Tensor]:
        """float32 [n1, d] and [n2, d], evaluation mode."""
        z = self._embed()
        return z[: self.kg1.num_entities], z[self.kg1.num_entities :]

    def state(self) -> dict[str, torch.Tensor]:
        """Copies of the weights and of the random generator's state, on the CPU."""
        weights = {name: value.detach().cpu().clone() for name, value in self.parameters.items()}
        return {**weights, "generator": self.generator.get_state()}

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        """Continue from `state()`, bit for bit."""
        check_state(state, self.state())
        with torch.no_grad():
            for name, value in self.parameters.items():
                value.copy_(state[name])
        self.generator.set_state(state["generator"])

    def _step(self, loss: torch.Tensor) -> torch.Tensor:
        """One step of the optimizer; returns the loss without its graph."""
        self.optimizer.zero_grad()
        torch.autograd.backward([loss])
        self.optimizer.step()
        return loss.detach()

    def uniform(self, *shape: int, limit: float) -> torch.Tensor:
        """Uniform on (−limit, limit)."""
        return torch.empty(shape).uniform_(-limit, limit, generator=self.generator).to(self.device)

    def glorot(self, rows: int, columns: int) -> torch.Tensor:
        """[rows, columns], Glorot-uniform."""
        return self.uniform(rows, columns, limit=(6 / (rows + columns)) ** 0.5)

    def permutation(self, size: int) -> torch.Tensor:
        """A random order of [0, size)."""
        return torch.randperm(size, generator=self.generator).to(self.device)

    def draw(self, *shape: int, below: int | None = None) -> torch.Tensor:
        """Uniform whole numbers in [0, below), below = N if not given."""
        high = self.num_entities if below is None else below
        return torch.randint(high, shape, generator=self.generator).to(self.device)
