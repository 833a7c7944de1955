"""Reading a sweep's YAML, with errors that name file and field."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from preplay.errors import PreplayError
from preplay.sweep._config import SweepConfig
from preplay.sweep._space import Parameters, flat, nested
from preplay.sweep._trainable import Trainable, get_trainable


def read_sweep(file: Path) -> SweepConfig:
    """Read and check a sweep, the trainable's own fields among it.

    Raises:
        PreplayError: Naming file and field; unknown keys are refused.
    """
    content = _yaml(file)
    try:
        config = SweepConfig.model_validate(content)
    except ValidationError as error:
        raise _explained(error, file) from error
    check_sweep(config, where=str(file))
    return config


def check_sweep(config: SweepConfig, *, where: str) -> None:
    """Compare fields, metrics and data with what the trainable knows.

    Raises:
        PreplayError: Naming ``where`` and the field.
    """
    trainable = get_trainable(config.trainable, where=f"{where}, field 'trainable'")
    for metric in config.metrics:
        if trainable.metrics.get(metric.name) != metric.mode:
            known = ", ".join(f"{name} ({mode})" for name, mode in trainable.metrics.items())
            raise PreplayError(
                f"{config.trainable} measures no {metric.name!r} to be {metric.mode}imised.",
                where=f"{where}, field 'metrics'",
                fix=f"There are: {known}.",
            )
    if (config.data is None) == trainable.needs_data:
        needs = "needs data" if trainable.needs_data else "makes its own experience and takes no data"
        raise PreplayError(f"{config.trainable} {needs}.", where=f"{where}, field 'data'")
    if config.scheduler.kind == "pbt" and not trainable.continues:
        raise PreplayError(
            f"PBT changes a training that goes on, but {config.trainable} starts afresh at each stage.",
            where=f"{where}, field 'scheduler.kind'",
            fix="Use asha or hyperband.",
        )
    if "mlflow" in config.loggers and find_spec("mlflow") is None:
        raise PreplayError(
            "MLflow is not installed.", where=f"{where}, field 'loggers'", fix="pip install mlflow"
        )
    _check_fields(config, trainable, where)


def configured(trainable: Trainable, base: dict[str, Any], parameters: Parameters) -> BaseModel:
    """The trainable's configuration with these values."""
    return trainable.config.model_validate(nested(dict(flat(base)) | dict(parameters)))


def _check_fields(config: SweepConfig, trainable: Trainable, where: str) -> None:
    for place, paths in (("base", dict(flat(config.base))), ("space", config.space)):
        for path in paths:
            if not _has_field(trainable.config, path.split(".")):
                raise PreplayError(
                    f"{trainable.config.__name__} has no field {path!r}.",
                    where=f"{where}, field '{place}.{path}'",
                )
    if unfit := [path for path in config.space if path in trainable.fixed]:
        raise PreplayError(
            f"{unfit[0]!r} decides what trials are compared on, so that it cannot be searched.",
            where=f"{where}, field 'space.{unfit[0]}'",
            fix="Put it into base.",
        )
    values: list[Parameters] = [{}]
    for name, parameter in config.space.items():
        ends = parameter.choice or parameter.uniform or parameter.loguniform or parameter.randint or ()
        values += [{name: value} for value in ends]
    for chosen in values:
        try:
            configured(trainable, config.base, chosen)
        except ValidationError as error:
            raise _explained(error, where, prefix="space." if chosen else "base.") from error


def _has_field(model: type[BaseModel], path: list[str]) -> bool:
    field = model.model_fields.get(path[0])
    if field is None or len(path) == 1:
        return field is not None
    kinds = [field.annotation, *get_args(field.annotation)]
    if get_origin(field.annotation) is dict:
        return True
    return any(isinstance(k, type) and issubclass(k, BaseModel) and _has_field(k, path[1:]) for k in kinds)


def _explained(error: ValidationError, file: Path | str, prefix: str = "") -> PreplayError:
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"]))
    shown = "" if isinstance(first["input"], dict) else f" (got {first['input']!r})"
    place = f"{file}, field {prefix + field!r}" if field else str(file)
    message = first["msg"].removeprefix("Value error, ")
    return PreplayError(f"{message}{shown}.", where=place, fix="See docs/cluster.md for every field.")


def _yaml(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise PreplayError(f"cannot be read as YAML: {error}", where=str(file)) from error
