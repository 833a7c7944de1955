"""Policies by specification, as written on the command line and in configurations."""

from collections.abc import Mapping
from typing import Protocol

from preplay.errors import PreplayError
from preplay.policies._chat import chat_policy
from preplay.policies._clone import TextEncoder
from preplay.policies._clone_files import load_clone
from preplay.policies._protocol import Policy
from preplay.policies._python import python_policy

_FORMS = "Write python:module:attribute, chat:FILE.yaml, cloned:PATH or env:NAME."


class HasPolicies(Protocol):
    """An environment that brings its own policies."""

    @property
    def name(self) -> str:
        """The environment's name."""
        ...

    def policies(self) -> Mapping[str, Policy]:
        """Its policies by name."""
        ...


def load_policy(
    spec: str,
    environment: HasPolicies | None = None,
    encoder: TextEncoder | None = None,
    answers: str | None = None,
) -> Policy:
    """The policy that ``spec`` names.

    ========================== ================================================================================
    form                       policy
    ========================== ================================================================================
    ``python:module:attribute``  a function (state text or ``AgentState`` -> text), a class or an object
    ``chat:FILE.yaml``           a language model behind an OpenAI-compatible endpoint; a file of ``ChatConfig``
    ``env:NAME``                 a policy that ``environment`` brings along
    ``cloned:PATH``              an artifact written by ``save_clone``; needs the ``encoder`` it was fitted with
    ========================== ================================================================================

    Args:
        answers: Folder that keeps the answers of ``chat:`` policies; in memory only by default.

    Raises:
        PreplayError: When the form is unknown or what it names cannot be used as a policy.
    """
    form, _, rest = spec.partition(":")
    match form:
        case "python":
            return python_policy(rest)
        case "chat":
            return chat_policy(rest, answers)
        case "env":
            return _environment_policy(rest, environment)
        case "cloned":
            if encoder is None:
                raise PreplayError(
                    "a cloned policy needs an encoder.", where=spec, fix="Name the encoder's model."
                )
            return load_clone(rest, encoder)
        case _:
            raise PreplayError(f"{spec!r} is not a policy.", fix=_FORMS)


def _environment_policy(name: str, environment: HasPolicies | None) -> Policy:
    if environment is None:
        raise PreplayError(f"env:{name} needs an environment.", fix="Name it, for example support_desk.")
    known = environment.policies()
    if name not in known:
        raise PreplayError(
            f"{environment.name} has no policy {name!r}.", fix=f"It has: {', '.join(sorted(known))}."
        )
    return known[name]
