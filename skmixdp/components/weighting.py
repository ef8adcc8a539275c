"""Rules for the public weight ``a`` of the direction ``a public + (1 - a) private``."""

from collections.abc import Callable

from ..public import PublicView
from .contracts import ReleaseFacts, Scene


class SampleWeight:
    """Public rows count as much as private ones: ``a = n_pub / (n_pub + n_priv)``.

    With it, the direction estimates the gradient of the mean loss over all rows, whatever
    the batch.

    Source: AdaMix, Algorithm 2 (sum of both losses), restated for means.
    """

    def bind(self, scene: Scene, facts: ReleaseFacts) -> Callable[[int, PublicView], float]:
        weight = scene.view.n_rows / (scene.view.n_rows + scene.n_private)
        return lambda t, view: weight
