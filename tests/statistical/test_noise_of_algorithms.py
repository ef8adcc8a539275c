"""Every algorithm asks for the noise that its arrays need, and gets it."""

import pytest

from tests.catalog import ALGORITHMS
from tests.noise import assert_energies, assert_scales, by_run, recorded
from tests.statistical.test_noise_everywhere import SIGMA, classifier, fitted


@pytest.mark.covering
@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("batch_size", [None, 60])
def test_every_algorithm_asks_for_the_noise_that_its_arrays_need(monkeypatch, name, batch_size):
    """Sound releases are refused with a probability below 1e-7, by the energies of their few draws."""
    log, stated = recorded(
        monkeypatch, lambda: fitted(classifier(ALGORITHMS[name], n_steps=6, batch_size=batch_size))
    )
    (run,) = by_run(log)
    assert_scales(run, *stated[0])
    assert_energies([release.draws(SIGMA) for release in run])
    n_parts = 2 if name.startswith("gep") or name == "pazo-s" else 1
    assert len(run) == 6 * n_parts
