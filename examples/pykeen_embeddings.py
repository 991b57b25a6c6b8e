"""Embeddings that PyKEEN trained, refined into links.

    pip install "stea-fast[examples]" && python examples/pykeen_embeddings.py

Both graphs are trained as one, in which the two entities of a known link are the same entity: the usual way to bring
two graphs into one space. What the model then guesses, `refine` checks against the neighbours.
"""

import numpy as np
import torch
from pykeen.models import TransE
from pykeen.training import SLCWATrainingLoop
from pykeen.triples import CoreTriplesFactory

import stea_fast as sf


def merged(pair, links):
    """One graph of both, and the id in it of every entity of each."""
    ids1 = np.arange(pair.kg1.num_entities)
    ids2 = pair.kg1.num_entities + np.arange(pair.kg2.num_entities)
    ids2[links[:, 1]] = links[:, 0]
    rows = []
    for kg, ids, shift in ((pair.kg1, ids1, 0), (pair.kg2, ids2, pair.kg1.num_relations)):
        head, relation, tail = kg.triples.T
        rows.append(np.stack([ids[head], relation + shift, ids[tail]], axis=1))
    triples = torch.from_numpy(np.concatenate(rows).astype("int64"))
    total = pair.kg1.num_entities + pair.kg2.num_entities
    return CoreTriplesFactory(triples, total, pair.kg1.num_relations + pair.kg2.num_relations), ids1, ids2


def embed(pair, links, epochs, dim):
    """Embeddings of both graphs by TransE."""
    factory, ids1, ids2 = merged(pair, links)
    model = TransE(triples_factory=factory, embedding_dim=dim, random_seed=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    loop = SLCWATrainingLoop(model=model, triples_factory=factory, optimizer=optimizer)
    loop.train(triples_factory=factory, num_epochs=epochs, batch_size=512, use_tqdm=False)
    vectors = model.entity_representations[0]().detach()
    return vectors[ids1], vectors[ids2]


def main(num_entities=500, rounds=2, epochs=60, dim=64):
    """Hit@1 of PyKEEN's guesses, and refined after self-training."""
    pair = sf.synthetic_pair(num_entities, seed=0, seed_fraction=0.3)
    step, links, first = sf.Refiner(pair.kg1, pair.kg2, pair.train), pair.train, None
    for _ in range(rounds):
        pairs = step(*embed(pair, links, epochs, dim))
        first = first or sf.evaluate(step.candidates, pair.test)
        links = np.concatenate([pair.train, pairs])
    return first.hit1, sf.evaluate(step.refinement, pair.test).hit1


if __name__ == "__main__":
    print("Hit@1 %.3f -> %.3f" % main())
