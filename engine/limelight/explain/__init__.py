"""Plain answers to "why?": each function here returns records, and `str()` of it is a sentence.

The magics print these answers, the views draw them, scripts call them.
"""

from limelight.explain.baked import BakedIn as BakedIn
from limelight.explain.baked import baked as baked
from limelight.explain.history import History as History
from limelight.explain.leaks import Leak as Leak
from limelight.explain.leaks import Leaks as Leaks
from limelight.explain.leaks import leaks as leaks
from limelight.explain.nan import Nan as Nan
from limelight.explain.nan import nan as nan
from limelight.explain.purity import Impurity as Impurity
from limelight.explain.purity import Purity as Purity
from limelight.explain.purity import purity as purity
from limelight.explain.retrace import Retrace as Retrace
from limelight.explain.retrace import retrace as retrace
from limelight.explain.side_effects import SideEffect as SideEffect
from limelight.explain.side_effects import SideEffects as SideEffects
from limelight.explain.side_effects import side_effects as side_effects
from limelight.explain.why_none import WhyNone as WhyNone
from limelight.explain.why_none import why_none as why_none
from limelight.holding import Holder as Holder
from limelight.holding import Holders as Holders
from limelight.holding import who_holds as who_holds
