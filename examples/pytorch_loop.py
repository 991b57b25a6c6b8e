"""A bare PyTorch training loop: one line of it is sf.Refiner.

python examples/pytorch_loop.py
"""

import torch
import torch.nn.functional as F  # noqa: N812

import stea_fast as sf


class Encoder(torch.nn.Module):
    """Free vectors, averaged over two hops of neighbours."""

    def __init__(self, kg1, kg2, dim):
        super().__init__()
        self.graphs = [self.mean_over_neighbours(kg) for kg in (kg1, kg2)]
        self.vectors = torch.nn.ParameterList(torch.randn(kg.num_entities, dim) / dim**0.5 for kg in (kg1, kg2))

    @staticmethod
    def mean_over_neighbours(kg):
        degrees = torch.from_numpy(kg.degrees)
        heads = torch.arange(kg.num_entities).repeat_interleave(degrees)
        places = torch.stack([heads, torch.from_numpy(kg.neighbors.astype("int64"))])
        return torch.sparse_coo_tensor(places, 1.0 / degrees[heads], (kg.num_entities,) * 2).coalesce()

    def forward(self):
        hops = [(own, graph @ own, graph @ (graph @ own)) for graph, own in zip(self.graphs, self.vectors, strict=True)]
        return [F.normalize(torch.cat(each, dim=1)) for each in hops]


def train(model, optimizer, links, epochs):
    """Draw linked entities together: each must find its counterpart among all others of the batch."""
    for _ in range(epochs):
        emb1, emb2 = model()
        scores = 10 * emb1[links[:, 0]] @ emb2[links[:, 1]].T
        target = torch.arange(len(links))
        loss = F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(num_entities=800, rounds=4, epochs=40, dim=64):
    """Hit@1 of the encoder before self-training, and refined after it."""
    torch.manual_seed(0)
    pair = sf.synthetic_pair(num_entities, seed=0, seed_fraction=0.2)
    model, seeds, first = Encoder(pair.kg1, pair.kg2, dim), torch.from_numpy(pair.train), None
    optimizer, step = torch.optim.Adam(model.parameters(), lr=0.02), sf.Refiner(pair.kg1, pair.kg2, seeds)
    train(model, optimizer, seeds, epochs)
    for number in range(rounds):
        pairs = step(*(emb.detach() for emb in model()))  # the drop-in: guesses that their neighbours support
        first = first or sf.evaluate(step.candidates, pair.test)
        print(f"round {number}: {len(pairs):,} pairs, {sf.evaluate(step.refinement, pair.test)}")
        train(model, optimizer, torch.cat([seeds, pairs]), epochs)
    return first.hit1, sf.evaluate(step.refinement, pair.test).hit1


if __name__ == "__main__":
    print("Hit@1 %.3f -> %.3f" % main())
