"""The probability of a link from what stands behind it: a monotone logistic model that shrinks to a prior.

log-odds = θ₀ + Σ θⱼ·(xⱼ - mⱼ)/sⱼ with θⱼ ≥ 0 for every feature, since each speaks for a link as it grows. θ minimises

    Σ weight·(-log-likelihood)  +  ½ Σ ((θⱼ - priorⱼ)/σⱼ)²,

so that a few held-out seeds change the prior a little, and many replace it. The prior, its scales m and s and its
deviations σ were fitted to other pairs of graphs by `bench/tuning/fit_calibration_prior.py`, which says to which.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from stea_fast.alignment.link_features import FEATURES

# The share of the weight that sources whose counterpart was taken away have together, however many they are. Chosen on
# hidden seeds of three pairs (bench/NOTES.md): with less of it, links of such sources are believed too often, and with
# more of it all others too seldom.
ABSENT_SHARE = 0.12


@dataclass(frozen=True, eq=False)
class LinkModel:
    """A fitted model.

    Attributes:
        theta: float64 [1 + features], intercept first.
        covariance: float64 [1 + features, 1 + features], of theta: how well the held-out links and the prior know it.
        means, scales: float64 [features].
    """

    theta: np.ndarray
    covariance: np.ndarray
    means: np.ndarray
    scales: np.ndarray

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """float64 [n]: the probability of every link."""
        probs: np.ndarray = expit(self.design(features) @ self.theta)
        return probs

    def design(self, features: np.ndarray) -> np.ndarray:
        """float64 [n, 1 + features]: scaled features, and a column of ones before them."""
        return with_intercept((features - self.means) / self.scales)

    def mean_and_deviation(self, features: np.ndarray) -> tuple[float, float]:
        """The expected share of right links in a set, and the standard deviation of that share.

        Two things are uncertain: the model, and, even if it were exact, how many of the links happen to be right.
        """
        if not len(features):
            return float("nan"), float("nan")
        probs = self(features)
        gradient = (probs * (1 - probs)) @ self.design(features) / len(probs)
        by_chance = float((probs * (1 - probs)).sum()) / len(probs) ** 2
        return float(probs.mean()), float(np.sqrt(gradient @ self.covariance @ gradient + by_chance))


@dataclass(frozen=True, eq=False)
class Prior:
    """What is known of the model before any link of the present pair has been looked at."""

    theta: np.ndarray
    deviations: np.ndarray
    means: np.ndarray
    scales: np.ndarray
    data: str

    def model(self) -> LinkModel:
        """The prior as a model."""
        return LinkModel(self.theta, np.diag(self.deviations**2), self.means, self.scales)


@cache
def shipped_prior() -> Prior:
    """The prior that comes with the package."""
    text = resources.files("stea_fast.alignment").joinpath("link_prior.json").read_text(encoding="utf-8")
    values = json.loads(text)
    if values["features"] != list(FEATURES):
        raise RuntimeError("link_prior.json is of other features; run bench/tuning/fit_calibration_prior.py")
    theta, deviations, means, scales = (np.array(values[name]) for name in ("theta", "deviations", "means", "scales"))
    return Prior(theta, deviations, means, scales, values["data"])


def fit(
    features: np.ndarray,
    right: np.ndarray,
    prior: Prior,
    absent: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> LinkModel:
    """The model that held-out links and the prior agree on.

    Args:
        features: [n, features], of `describe_links`.
        right: bool [n], whether the link is the true one.
        prior: what θ shrinks to.
        absent: bool [n], whether the counterpart had been taken away; default: of none.
        weights: float64 [n], what each link counts; default: 1.
    """
    if not len(features):
        return prior.model()
    design = with_intercept((features - prior.means) / prior.scales)
    counts = np.ones(len(right)) if weights is None else weights
    counts = counts if absent is None else _with_absent_share(counts, absent)
    truth = right.astype(np.float64)

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        logits, offset = design @ theta, (theta - prior.theta) / prior.deviations
        value = counts @ (np.logaddexp(0.0, logits) - truth * logits) + 0.5 * offset @ offset
        return value, design.T @ (counts * (expit(logits) - truth)) + offset / prior.deviations

    bounds = [(None, None)] + [(0.0, None)] * (design.shape[1] - 1)
    theta = minimize(loss, prior.theta, jac=True, method="L-BFGS-B", bounds=bounds).x
    probs = expit(design @ theta)
    information = (design * (counts * probs * (1 - probs))[:, None]).T @ design + np.diag(prior.deviations**-2.0)
    return LinkModel(theta, np.linalg.inv(information), prior.means, prior.scales)


def _with_absent_share(weights: np.ndarray, absent: np.ndarray) -> np.ndarray:
    """float64 [n]: the same for sources with a counterpart; the others share what makes them `ABSENT_SHARE` of all."""
    together = ABSENT_SHARE / (1.0 - ABSENT_SHARE) * weights[~absent].sum()
    theirs = float(weights[absent].sum())
    return np.where(absent, weights * (together / theirs if theirs else 0.0), weights)


def with_intercept(values: np.ndarray) -> np.ndarray:
    """A column of ones before the others."""
    return np.concatenate([np.ones((len(values), 1)), values], axis=1)
