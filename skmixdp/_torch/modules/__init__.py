"""Torch modules as models: losses and gradients of private rows, one by one, and of public rows.

A fit with a module imports this package on demand.
"""

from .checks import (
    is_module,
    refuse_quantised,
    select_parameters,
    trained_batch_norms,
    trained_module,
    working_copy,
)
from .directions import Direction, Seeded
from .forward import LabelledRows, ModuleParameters, cross_entropy, flat, outputs_of
from .gradients import GradientData, GradientRows
from .inputs import as_labels, check_rows, collect_public
from .probe import check_forward, ordinary_rows
from .public import SCALE_ROWS, ModuleData, ModuleLoss, ModuleView
from .rows import LossesAt, ModuleRows
from .saving import state_of, with_state
from .start import warm_start
