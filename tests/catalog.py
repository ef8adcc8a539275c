"""Every piece and algorithm, by name: a new one is tested everywhere by one line here."""

from skmixdp.algorithms import DOPE, GEP, AdaMix, NoisyGD
from skmixdp.components import (
    SGD,
    BallProjection,
    FullSpace,
    L2Clip,
    LipschitzClip,
    PolynomialAverage,
    PublicQuantileClip,
    PublicSubspace,
    SampleWeight,
    deviation_norms,
)

CLIPPERS = {
    "l2": L2Clip(0.5),
    "public-quantile": PublicQuantileClip(0.9, floor=0.05),
    "public-quantile of deviations": PublicQuantileClip(0.9, floor=0.05, measure=deviation_norms),
    "lipschitz": LipschitzClip(1.5),
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
}

ALGORITHMS = {
    "noisy-gd": NoisyGD(),
    "noisy-gd, ball, public centre": NoisyGD(radius=2.0, center="public", momentum=0.0),
    "noisy-gd, decaying, averaged": NoisyGD(schedule="decaying", radius=5.0, average=True),
    "adamix": AdaMix(),
    "adamix, projected": AdaMix(n_components=3, clip_floor=0.01, center="public"),
    "adamix, most dimensions": AdaMix(n_components=7),
    "adamix, theoretical": AdaMix(variant="theoretical", radius=5.0),
    "dope-sgd": DOPE(),
    "dope-sgd, fixed clip, public centre": DOPE(0.2, center="public", momentum=0.0),
    "gep": GEP(),
    "gep, few directions": GEP(3, quantile=0.5, clip_floor=0.01),
    "gep, fixed clips, public centre": GEP(clip=0.2, residual_clip=0.3, center="public", momentum=0.0),
}
