"""The stages of a linear head, in the order of its report."""

from .stage import Order
from .stages.calibration import MeanPrediction, Residuals, Temperature
from .stages.columns import NoisyColumnScales
from .stages.comparison import Comparison
from .stages.geometry import Directions, Length, Mean, Preconditioner
from .stages.mapping import PublicMap
from .stages.public_checks import Start, Units
from .stages.scales import MeanWeight, ScaleOfWeights, TargetScale
from .stages.shares import Adjustment, ClassCounts, LabelShares
from .stages.student import Student
from .stages.training import GradientLengths, Training

STAGES = Order(
    before=(
        PublicMap(),
        ScaleOfWeights(),
        ClassCounts(),
        MeanWeight(),
        LabelShares(),
        Units(),
        TargetScale(),
        NoisyColumnScales(),
        Length(),
        Mean(),
        Directions(),
        Preconditioner(),
        Start(),
        GradientLengths(),
    ),
    training=Training(),
    after=(Comparison(), Temperature(), MeanPrediction(), Residuals(), Adjustment(), Student()),
)
