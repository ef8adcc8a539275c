"""How many steps to take and how large, from public quantities only."""

import math
from collections.abc import Callable

from .protocols import PublicInfo, ReleaseFacts

#: Without public rows there is no centring, and part of each row's length is what all have in common:
#: so much more noise is worth taking for a total step so much longer.
_UNCENTRED = 1.5


class BalancedSteps:
    """Total step in proportion to what the noise allows.

    A step moves every output of a unit row by noise of standard deviation
    ``eta sigma S / b`` (``S`` the sensitivity of the sum, ``b`` the expected private batch,
    here over its weight ``1 - a``, root mean square), T steps by ``sqrt(T)`` times that. The
    learning rate makes the total ``c``, the loss's ``noise_per_output`` (and half as much again
    without public rows): ``eta = c b / (sigma S sqrt(T))``, whatever n, d_in, k and epsilon. At
    full batch ``sigma = sqrt(T) / mu``, so the total step is ``r = eta T = c mu n / S`` (sampled
    batches come close to it unless sigma is small). T is as large as ``r`` needs for each step
    to be gentle: ``eta * curvature`` is at most 1.5, or half of the stability limit where that is
    less; ``2 sqrt(r * curvature)`` is enough where the last heads are averaged.

    Parameters
    ----------
    learning_rate : float or "auto"
        A number fixes the step size; the number of steps still follows the rule.
    momentum : float
        The update's momentum; it widens the range of stable step sizes.
    l2 : float
        Strength of the regulariser, which adds to the curvature.
    noise_factor : float
        Multiplies the loss's ``noise_per_output``, for clips whose rows fall short of their
        sensitivity.
    curvature : float or None
        Largest factor by which a step of rate 1 can change the direction; None is that of the public facts,
        which is that of gradient descent.
    minimum, maximum : int
        Range of T; at least four times as many as the momentum remembers.
    effective_step : float
        How far the update takes the head in the long run for each unit of the step size.
    averaged : bool
        Whether the update averages its last heads.
    max_step_scale : float
        How far below its bound the loss's curvature is taken to be for the learning rate.

    Notes
    -----
    Depends on mu, n, the public rows and the clip at the start; nothing is tuned on private
    rows. The curvature is that of the public rows (half of the largest eigenvalue of their
    second moment for softmax); half of the stability limit of gradient descent with momentum is
    ``(1 + momentum) / ((1 - momentum) curvature)``.
    """

    def __init__(
        self,
        learning_rate: float | str,
        momentum: float,
        l2: float,
        *,
        noise_factor: float = 1.0,
        curvature: float | None = None,
        minimum: int = 15,
        maximum: int = 150,
        effective_step: float = 1.0,
        averaged: bool = False,
        max_step_scale: float = 1.0,
    ) -> None:
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.l2 = l2
        self.noise_factor = noise_factor
        self.curvature = curvature
        self.minimum = minimum
        self.maximum = maximum
        self.effective_step = effective_step
        self.averaged = averaged
        self.max_step_scale = max_step_scale

    def count(self, info: PublicInfo, sensitivity: float) -> int:
        total_step = self._noise(info) * info.mu * _all_rows(info) / sensitivity
        # Half of the stability limit where that is less: plain descent, and mixed heads.
        gentle = min(1.5, (1 + self.momentum) / (1 - self.momentum))
        stiffness = total_step * self._curvature(info)
        wanted = 2 * math.sqrt(stiffness) if self.averaged else stiffness / gentle
        # Momentum has the head's way behind it only some time after the gradients.
        least = max(self.minimum, round(4 / (1 - self.momentum)) if self.momentum > 0 else 0)
        return math.ceil(min(max(wanted, least), self.maximum))

    def bind(self, info: PublicInfo, facts: ReleaseFacts) -> Callable[[int], float]:
        if isinstance(self.learning_rate, str):
            spread = facts.noise_multiplier * facts.sensitivity * math.sqrt(facts.n_steps)
            # The public gradient's weight dilutes the noise; where it is all, there is none.
            noise = spread * facts.private_weight / info.batch_size
            balanced = self._noise(info) / noise if noise else math.inf
            curvature = self._curvature(info) / self.max_step_scale + self.l2
            # Public rows of zeros, without an intercept, have none and bound nothing.
            limit = (1 + self.momentum) / ((1 - self.momentum) * curvature) if curvature else math.inf
            # What momentum still remembers at the end has not moved the head.
            behind = self.momentum / (1 - self.momentum) if self.momentum > 0 else 0.0
            balanced *= facts.n_steps / max(facts.n_steps - behind, facts.n_steps / 2)
            rate = min(balanced, limit) / self.effective_step
            rate = rate if rate < math.inf else 1.0  # nothing pulls at the head: any rate will do
        else:
            rate = float(self.learning_rate)
        return lambda t: rate

    def _noise(self, info: PublicInfo) -> float:
        uncentred = info.view.n_rows == 0 and not info.loss.quadratic
        return self.noise_factor * info.loss.noise_per_output * (_UNCENTRED if uncentred else 1)

    def _curvature(self, info: PublicInfo) -> float:
        return info.curvature if self.curvature is None else self.curvature


def _all_rows(info: PublicInfo) -> int:
    return info.n_private + info.view.n_rows


class DecayingSteps:
    """``eta_t = 2 / (l2 (t + 1))``, as many steps as a fixed noise multiplier affords.

    The first step is ``1 / l2``, so the heads must be kept in a ball.

    Parameters
    ----------
    l2 : float
        Penalty on the head, above 0.
    noise_multiplier : float
        What the number of steps is chosen by.

    Source: AdaMix, Theorem 3 and Algorithm 3; sigma = 20 as in its section 4.
    """

    def __init__(self, l2: float, *, noise_multiplier: float = 20.0) -> None:
        self.l2 = l2
        self.noise_multiplier = noise_multiplier

    def count(self, info: PublicInfo, sensitivity: float) -> int:
        return max(1, math.floor((info.mu * self.noise_multiplier) ** 2))

    def bind(self, info: PublicInfo, facts: ReleaseFacts) -> Callable[[int], float]:
        return lambda t: 2 / (self.l2 * (t + 1))
