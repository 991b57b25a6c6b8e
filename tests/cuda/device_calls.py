"""Calls of `refine` whose candidates are tensors, for the tests of the CUDA backend."""

from __future__ import annotations

import pytest

import stea_fast as sf

torch = pytest.importorskip("torch", reason="the CUDA backend holds its arrays in torch tensors")


def as_tensors(candidates):
    def ranking(side):
        return sf.Ranking(torch.tensor(side.indices, dtype=torch.int64), torch.tensor(side.scores))

    return sf.Candidates(ranking(candidates.forward), ranking(candidates.backward))


def refined_on_device(pair, candidates):
    return sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train, method="product", backend="cuda")


def moved(candidates, device):
    def ranking(side):
        return sf.Ranking(torch.tensor(side.indices, device=device), torch.tensor(side.scores, device=device))

    return sf.Candidates(ranking(candidates.forward), ranking(candidates.backward))
