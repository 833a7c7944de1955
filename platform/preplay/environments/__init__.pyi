from ._protocol import Environment as Environment
from ._protocol import Sessions as Sessions
from ._registry import get_environment as get_environment
from ._truth import TruthResult as TruthResult
from ._truth import truth as truth
