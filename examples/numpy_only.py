"""A NumPy codebase in the manner of RREA and Dual-AMN's data side: sf.Refiner brings self-training, without torch.

    python examples/numpy_only.py

The encoder is the codebase's own: random vectors for known links, spread over relations and neighbours. Every round the
refiner checks the guesses and hands back the pairs that survive; they become known links of the next round.
"""

import numpy as np
from scipy.sparse import csr_array

import stea_fast as sf


def encode(kg, known, anchors, hops=2):
    """float32 [n, d]: what reaches every entity from the known ones, weighted by how telling a relation is."""
    weights = kg.inverse_functionality[kg.relations]
    shape = (kg.num_entities, kg.num_entities)
    spread = csr_array((weights, kg.neighbors, kg.indptr), shape=shape)
    level = np.zeros((kg.num_entities, anchors.shape[1]), dtype=np.float32)
    level[known] = anchors
    levels = [level]
    for _ in range(hops):
        level = spread @ level
        level /= np.maximum(np.linalg.norm(level, axis=1, keepdims=True), 1e-9)
        levels.append(level)
    return np.concatenate(levels, axis=1)


def main(num_entities=1000, rounds=4, dim=256):
    """Hit@1 of the encoder alone, and after self-training."""
    pair = sf.synthetic_pair(num_entities, seed=0, seed_fraction=0.05)
    rng = np.random.default_rng(0)
    step = sf.Refiner(pair.kg1, pair.kg2, pair.train)
    links, first = pair.train, None
    for number in range(rounds):
        anchors = rng.standard_normal((len(links), dim)).astype(np.float32)
        emb1, emb2 = (encode(kg, links[:, side], anchors) for side, kg in enumerate((pair.kg1, pair.kg2)))
        pairs = step(emb1, emb2)
        first = first or sf.evaluate(step.candidates, pair.test)
        print(f"round {number}: {len(pairs):,} pairs, {sf.evaluate(step.refinement, pair.test)}")
        links = np.concatenate([pair.train, pairs])
    return first.hit1, sf.evaluate(step.refinement, pair.test).hit1


if __name__ == "__main__":
    print("Hit@1 %.3f -> %.3f" % main())
