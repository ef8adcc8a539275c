"""The stages of a linear head, in the order of its report."""

from .stage import Order
from .stages.columns import NoisyColumnScales
from .stages.comparison import Comparison
from .stages.directions import Directions
from .stages.gradient_lengths import GradientLengths
from .stages.length import Length
from .stages.mean import Mean
from .stages.mean_prediction import MeanPrediction
from .stages.public_map import PublicMap
from .stages.residuals import Residuals
from .stages.second_moment import Preconditioner
from .stages.shares import Adjustment, ClassCounts, LabelShares
from .stages.start import Start
from .stages.student import Student
from .stages.target_scale import TargetScale
from .stages.temperature import Temperature
from .stages.training import Training
from .stages.units import Units
from .stages.weights import MeanWeight, ScaleOfWeights

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
