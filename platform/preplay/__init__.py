"""preplay: try a new LLM agent on its past before it meets its users.

The data flow is one way: logs -> embedding -> world_model -> rollout -> estimators -> report.
"""

__version__ = "0.1.0"
