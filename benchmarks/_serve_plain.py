"""The baseline: the same critic behind plain FastAPI and uvicorn, one request after another, nothing kept."""

import sys

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from preplay.control import Controller
from preplay.critics import DecisionState
from preplay_serve._config import ServerConfig
from preplay_serve._critic import load_served_critic


class State(BaseModel):
    """As in ``/v1/score``."""

    task: str
    observation: str
    turn: int


class Request(BaseModel):
    """As in ``/v1/score``."""

    model: str
    state: State
    candidates: list[str]


def main(critic: str, port: int) -> None:
    """Serve until killed."""
    torch.set_num_threads(1)
    served = load_served_critic(critic, ServerConfig(), encoders={})
    controller, app = Controller(served.scorer, served.encoder), FastAPI()

    @app.post("/v1/score")
    async def score(body: Request) -> dict:
        state = DecisionState(body.state.task, body.state.observation, body.state.turn)
        decision = controller.decide(state, body.candidates)
        return {"outcome": decision.outcome, "action": decision.action, "scores": decision.scores}

    uvicorn.run(app, port=port, log_level="error")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
