"""Rules for the public weight ``a`` of the direction ``a public + (1 - a) private``."""

from ..public import PublicView


class SampleWeight:
    """Public rows count as much as private ones: ``a = n_pub / (n_pub + b)``.

    With it, the direction is the gradient of the mean loss over all rows.

    Source: AdaMix, Algorithm 2 (sum of both losses), restated for means.
    """

    def weight(self, t: int, view: PublicView, batch_size: float) -> float:
        return view.n_rows / (view.n_rows + batch_size)
