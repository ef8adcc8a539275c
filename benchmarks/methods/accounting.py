"""Calls to the accountant at full batch, which a fit makes before its first step."""

from skmixdp.privacy import epsilon_of, noise_multiplier_for, steps_for

from ..measure import Case
from ..problems import Problem

#: A call should take less than this: then nobody waits for it.
_ALLOWED = 5e-3


def cases(problem: Problem) -> list[Case]:
    """The three directions of calibration; the problem plays no part."""

    def epsilon() -> str:
        return f"epsilon {epsilon_of(20.0, 240, delta=1e-5):.4f}"

    def multiplier() -> str:
        return f"multiplier {noise_multiplier_for(1.0, 1e-5, n_steps=240):.4f}"

    def steps() -> str:
        return f"{steps_for(1.0, 1e-5, noise_multiplier=60.0)} steps"

    calls = [("epsilon_of", epsilon), ("noise_multiplier_for", multiplier), ("steps_for", steps)]
    return [Case("accounting", name, "call", run, _ALLOWED) for name, run in calls]
