"""Configurations: the shipped one deploys, mistakes are told, hosts of endpoints are checked."""

from pathlib import Path

import pytest
import yaml
from ray.serve.schema import ServeDeploySchema
from typer.testing import CliRunner

from preplay.cli import app
from preplay.errors import PreplayError
from preplay_serve._config import ServerConfig, load_server_config
from preplay_serve.app import BuildArgs, build

SHIPPED = Path(__file__).parents[2] / "serve" / "config.yaml"
runner = CliRunner()


def test_the_shipped_configuration_is_what_serve_reads():
    content = yaml.safe_load(SHIPPED.read_text())
    parsed = ServeDeploySchema.model_validate(content).model_dump(exclude_unset=True)
    assert set(content) == set(parsed)  # Serve drops keys that it does not know
    (application,) = content["applications"]
    assert application["import_path"] == "preplay_serve.app:build"
    config = ServerConfig.model_validate(application["args"])
    assert config.limits.candidates == 64
    assert not config.allow_anonymous


def test_the_application_is_built_from_arguments(tmp_path):
    application = build(BuildArgs.model_validate({"models": str(tmp_path), "state": str(tmp_path / "state")}))
    assert application._bound_deployment.name == "Api"
    with pytest.raises(ValueError, match="modells"):
        build(BuildArgs.model_validate({"modells": "typo"}))


def test_mistakes_in_a_file_are_told(tmp_path):
    file = tmp_path / "server.yaml"
    file.write_text("limits: {candidates: 0}")
    with pytest.raises(PreplayError, match=r"limits.candidates.*greater than or equal to 1"):
        load_server_config(file)


def test_endpoints_must_be_on_allowed_hosts(tmp_path):
    endpoint = {"url": "https://models.example.org/v1", "model": "m"}
    settings = {"endpoints": {"e": endpoint}, "endpoint_hosts": ["other.example.org"]}
    with pytest.raises(PreplayError, match=r"models\.example\.org.*not an allowed host"):
        ServerConfig.model_validate({"evaluations": settings}).check_endpoints()
    allowed = settings | {"endpoint_hosts": ["models.example.org"]}
    ServerConfig.model_validate({"evaluations": allowed}).check_endpoints()


def preplay(*arguments: str) -> str:
    result = runner.invoke(app, ["serve", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_tokens_are_made_listed_and_revoked(tmp_path):
    state = ["--state", str(tmp_path)]
    secret = preplay("token", "create", "agent", "--scope", "score", *state).strip()
    assert secret.startswith("preplay_")
    listed = preplay("token", "list", *state)
    assert "agent" in listed
    assert secret.split("_", 2)[2] not in listed
    assert secret.split("_", 2)[2].encode() not in (tmp_path / "preplay.db").read_bytes()
    preplay("token", "revoke", "agent", *state)
    again = runner.invoke(app, ["serve", "token", "revoke", "agent", *state])
    assert isinstance(again.exception, PreplayError)


def test_a_public_address_needs_a_token(tmp_path):
    result = runner.invoke(app, ["serve", "--host", "0.0.0.0", "--state", str(tmp_path)])
    assert isinstance(result.exception, PreplayError)
    assert "no token yet" in str(result.exception)


def test_a_critic_is_published_and_rolled_back(critic_folder, tmp_path):
    state = ["--state", str(tmp_path)]
    preplay("publish", "mine", str(critic_folder / "long"), *state)
    preplay("publish", "mine", str(critic_folder / "short"), *state)
    assert "mine is now" in preplay("rollback", "mine", *state)
    refused = runner.invoke(app, ["serve", "rollback", "mine", *state])
    assert "no earlier version" in str(refused.exception)
    preplay("refresh", "--models", str(critic_folder), *state)
