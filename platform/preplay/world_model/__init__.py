"""World models learned from logs."""

from preplay.world_model._protocol import Dynamics, Transition, WorldModel, WorldState, draw_noise

__all__ = ["Dynamics", "Transition", "WorldModel", "WorldState", "draw_noise"]
