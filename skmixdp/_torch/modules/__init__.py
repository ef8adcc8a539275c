"""Torch modules as models: losses and gradients of private rows, one by one, and of public rows.

A fit with a module imports this package on demand.
"""

from .checks import (
    as_labels,
    check_rows,
    collect_public,
    is_module,
    refuse_quantised,
    select_parameters,
    state_of,
    trained_batch_norms,
    trained_module,
    with_state,
    working_copy,
)
from .directions import Direction, Seeded
from .forward import LabelledRows, ModuleParameters, cross_entropy, flat, outputs_of
from .probe import check_forward, ordinary_rows
from .public import SCALE_ROWS, GradientData, ModuleData, ModuleLoss, ModuleView, warm_start
from .rows import GradientRows, LossesAt, ModuleRows
