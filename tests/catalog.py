"""Every piece and algorithm, by name: a new one is tested everywhere by one line here."""

from skmixdp.algorithms import DOPE, GEP, PAZO, PDADPMD, AdaMix, Auto, Coupling, DPZero, ModelMix, NoisyGD
from skmixdp.components import (
    SGD,
    AutomaticClip,
    ConstantWeight,
    ConvexWeight,
    CosineWeight,
    CouplingWeight,
    L2Clip,
    SampleWeight,
)
from skmixdp.components.clipping import LipschitzClip, PublicQuantileClip
from skmixdp.components.subspaces import PublicSubspace
from skmixdp.components.updates import (
    BallProjection,
    PolynomialAverage,
    TailAverage,
    TowardsStart,
    UniformAverage,
)
from tests.private_names import L2LinfClip, MixingDescent, deviation_norms, mixed_update

CLIPPERS = {
    "l2": L2Clip(0.5),
    "public-quantile": PublicQuantileClip(0.9, floor=0.05),
    "public-quantile of deviations": PublicQuantileClip(0.9, floor=0.05, measure=deviation_norms),
    "lipschitz": LipschitzClip(1.5),
    "l2 and linf": L2LinfClip(L2Clip(0.5), 4),
    "public-quantile and linf": L2LinfClip(PublicQuantileClip(0.9, floor=0.05), 3),
    "automatic": AutomaticClip(1.0),
    "automatic, small gamma": AutomaticClip(1e-3),
}

SUBSPACES = {
    "public, a few dimensions": PublicSubspace(2),
    "public, most dimensions": PublicSubspace(6),
    "public, exact sums": PublicSubspace(2, exact_sums=True),
}

WEIGHTINGS = {
    "sample": SampleWeight(),
    "constant": ConstantWeight(0.3),
    "cosine": CosineWeight(),
    "cosine, ended": CosineWeight(5),
    "coupling": CouplingWeight(),
    "convex": ConvexWeight(),
}

UPDATES = {
    "descent": SGD(),
    "momentum": SGD(0.9),
    "ball": BallProjection(SGD(0.5), 0.7),
    "average": PolynomialAverage(SGD()),
    "ball and average": PolynomialAverage(BallProjection(SGD(), 0.7)),
    "mixing": MixingDescent(lambda n_steps: 4.0),
    "mixing, ball and average": mixed_update(
        PolynomialAverage(BallProjection(SGD(), 0.7)), lambda n_steps: 4.0
    ),
    "uniform": UniformAverage(SGD()),
    "tail": TailAverage(SGD(0.5)),
    "towards start": TowardsStart(SGD(0.5)),
}

#: AdaMix as its Theorem 3 analyses it.
THEORETICAL = NoisyGD("lipschitz", radius=5.0, center="public", schedule="decaying", average=True)

ALGORITHMS = {
    "auto": Auto(),
    "auto, as it comes": Auto(0.2, shrink=False),
    "noisy-gd": NoisyGD(),
    "noisy-gd, ball, public centre": NoisyGD(radius=2.0, center="public", momentum=0.0),
    "noisy-gd, decaying, averaged": NoisyGD(schedule="decaying", radius=5.0, average=True),
    "adamix": AdaMix(),
    "adamix, projected": AdaMix(n_components=3, clip_floor=0.01, center="public"),
    "adamix, most dimensions": AdaMix(n_components=7),
    "adamix, theoretical": THEORETICAL,
    "modelmix": ModelMix(),
    "modelmix, noisy-gd, linf": ModelMix(NoisyGD(momentum=0.0), width=30.0, linf_split=4),
    "modelmix, coupling": ModelMix(Coupling(momentum=0.0), width=30.0),
    "modelmix, dope-sgd, linf": ModelMix(DOPE(momentum=0.0), width=30.0, linf_split=4),
    "modelmix, cosine pda-dpmd": ModelMix(NoisyGD(momentum=0.0, public_weight="cosine"), width=30.0),
    "modelmix, theoretical": ModelMix(THEORETICAL, width=30.0),
    "adamix, coupling weight": AdaMix(public_weight="coupling"),
    "noisy-gd, private alone": NoisyGD(public_weight=0.0),
    "coupling": Coupling(),
    "coupling, convex weight": Coupling(0.1, public_weight="convex"),
    "pda-dpmd": PDADPMD(),
    "pda-dpmd, cosine": NoisyGD(momentum=0.0, public_weight="cosine"),
    "pda-dpmd, second clip": NoisyGD(momentum=0.0, public_weight=CosineWeight(100), second_clip=0.5),
    "dope-sgd": DOPE(),
    "dope-sgd, fixed clip, public centre": DOPE(0.2, center="public", momentum=0.0),
    "gep": GEP(),
    "gep, few directions": GEP(3, quantile=0.5, clip_floor=0.01),
    "gep, fixed clips, public centre": GEP(clip=0.2, residual_clip=0.3, center="public", momentum=0.0),
    "dpzero": DPZero(),
    "dpzero, gaussian, three directions": DPZero(3, directions="gaussian", loss_clip=0.1),
    "pazo-m": PAZO("m"),
    "pazo-m, public batch, two directions": PAZO("m", n_directions=2, public_batch_size=8, loss_clip=0.05),
    "pazo-p": PAZO("p"),
    "pazo-p, normalised, gaussian": PAZO("p", orthonormal=False, directions="gaussian", loss_clip=0.1),
    "pazo-s": PAZO("s"),
    "pazo-s, no further candidate": PAZO("s", candidate_noise=None, public_batch_size=4, loss_clip=0.2),
}
