"""Every piece and algorithm, by name: a new one is tested everywhere by one line here."""

from skmixdp.algorithms import AdaMix, ModelMix, NoisyGD
from skmixdp.components import (
    SGD,
    BallProjection,
    FullSpace,
    L2Clip,
    L2LinfClip,
    LipschitzClip,
    MixingDescent,
    PolynomialAverage,
    PublicQuantileClip,
    PublicSubspace,
    SampleWeight,
)

CLIPPERS = {
    "l2": L2Clip(0.5),
    "public-quantile": PublicQuantileClip(0.9, floor=0.05),
    "lipschitz": LipschitzClip(1.5),
    "l2 and linf": L2LinfClip(L2Clip(0.5), 4),
    "public-quantile and linf": L2LinfClip(PublicQuantileClip(0.9, floor=0.05), 3),
}

SUBSPACES = {
    "full": FullSpace(),
    "public, a few dimensions": PublicSubspace(2),
    "public, most dimensions": PublicSubspace(6),
    "public, exact sums": PublicSubspace(2, exact_sums=True),
}

WEIGHTINGS = {"sample": SampleWeight()}

UPDATES = {
    "descent": SGD(),
    "momentum": SGD(0.9),
    "ball": BallProjection(SGD(0.5), 0.7),
    "average": PolynomialAverage(SGD()),
    "ball and average": PolynomialAverage(BallProjection(SGD(), 0.7)),
    "mixing": MixingDescent(lambda n_steps: 4.0),
    "mixing, ball and average": PolynomialAverage(BallProjection(SGD(), 0.7)).for_mixing(lambda n_steps: 4.0),
}

ALGORITHMS = {
    "noisy-gd": NoisyGD(),
    "noisy-gd, ball, public centre": NoisyGD(radius=2.0, center="public", momentum=0.0),
    "noisy-gd, decaying, averaged": NoisyGD(schedule="decaying", radius=5.0, average=True),
    "adamix": AdaMix(),
    "adamix, projected": AdaMix(n_components=3, clip_floor=0.01, center="public"),
    "adamix, most dimensions": AdaMix(n_components=7),
    "adamix, theoretical": AdaMix(variant="theoretical", radius=5.0),
    "modelmix": ModelMix(),
    "modelmix, noisy-gd, linf": ModelMix(NoisyGD(momentum=0.0), width=30.0, linf_split=4),
    "modelmix, theoretical": ModelMix(AdaMix(variant="theoretical", radius=5.0), width=30.0),
}
