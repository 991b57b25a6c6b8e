"""A graph neural network of PyTorch Geometric on a pair of graphs, self-trained through sf.Refiner.

pip install "stea-fast[examples]" && python examples/pyg_gnn.py
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

import stea_fast as sf


def as_data(kg):
    """A graph closed under inverses, as PyTorch Geometric holds it."""
    heads = torch.arange(kg.num_entities).repeat_interleave(torch.from_numpy(kg.degrees))
    tails = torch.from_numpy(kg.neighbors.astype("int64"))
    return Data(edge_index=torch.stack([tails, heads]), num_nodes=kg.num_entities)


class Network(torch.nn.Module):  # two layers shared by both graphs, over free input vectors
    def __init__(self, sizes, dim):
        super().__init__()
        self.inputs = torch.nn.ParameterList(torch.randn(size, dim) / dim**0.5 for size in sizes)
        self.layers = torch.nn.ModuleList(SAGEConv(dim, dim) for _ in range(2))

    def forward(self, graphs):
        out = []
        for graph, x in zip(graphs, self.inputs, strict=True):
            hidden = torch.tanh(self.layers[0](x, graph.edge_index))
            out.append(F.normalize(torch.cat([x, hidden, self.layers[1](hidden, graph.edge_index)], dim=1)))
        return out


def train(network, graphs, optimizer, links, epochs):
    for _ in range(epochs):
        emb1, emb2 = network(graphs)
        loss = F.cross_entropy(10 * emb1[links[:, 0]] @ emb2[links[:, 1]].T, torch.arange(len(links)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(num_entities=800, rounds=4, epochs=40, dim=64):
    """Hit@1 of the network before self-training, and refined after it."""
    pair = sf.synthetic_pair(num_entities, seed=0, seed_fraction=0.2)
    graphs, seeds, first = [as_data(pair.kg1), as_data(pair.kg2)], torch.from_numpy(pair.train), None
    network, step = Network([graph.num_nodes for graph in graphs], dim), sf.Refiner(pair.kg1, pair.kg2, seeds)
    optimizer, links = torch.optim.Adam(network.parameters(), lr=0.02), seeds
    for _ in range(rounds):
        train(network, graphs, optimizer, links, epochs)
        pairs = step(*(emb.detach() for emb in network(graphs)))
        first = first or sf.evaluate(step.candidates, pair.test)
        links = torch.cat([seeds, pairs])
    return first.hit1, sf.evaluate(step.refinement, pair.test).hit1


if __name__ == "__main__":
    torch.manual_seed(0)
    print("Hit@1 %.3f -> %.3f" % main())
