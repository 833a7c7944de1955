"""Guards of the layout: source roots stay plain folders, imports go one way along the data flow."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE_ROOTS = ("platform", "rllib_ext", "serve")
LAYERS = [
    {"errors", "seeding"},
    {"names"},
    {"artifacts"},
    {"shards", "stage", "models"},
    {"logs"},
    {"embedding", "actions"},
    {"policies", "rewards"},
    {"environments"},
    {"world_model", "critics"},
    {"rollout"},
    {"estimators", "control", "rehearsal", "backtest"},
    {"report"},
    {"pipeline", "client"},
    {"sweep"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def package_files() -> list[Path]:
    return sorted(f for root in SOURCE_ROOTS for f in (ROOT / root).rglob("*.py"))


def imported_modules(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("root", SOURCE_ROOTS)
def test_source_root_has_no_init(root):
    assert not (ROOT / root / "__init__.py").exists(), f"{root}/__init__.py would shadow another module"


def test_standard_library_platform_wins():
    import platform

    assert Path(platform.__file__).name == "platform.py"
    assert platform.system()


def test_every_package_is_typed():
    packages = [p.parent for root in SOURCE_ROOTS for p in (ROOT / root).glob("*/__init__.py")]
    assert packages
    assert [p for p in packages if not (p / "py.typed").exists()] == []


@pytest.mark.parametrize("file", package_files(), ids=lambda f: str(f.relative_to(ROOT)))
def test_imports_go_one_way(file):
    parts = file.relative_to(ROOT).with_suffix("").parts
    modules = imported_modules(file)
    if parts[0] == "platform":
        assert not any(
            m.startswith(("preplay_rllib", "preplay_serve", "ray.rllib", "ray.serve")) for m in modules
        )
    own = parts[2] if parts[:2] == ("platform", "preplay") and len(parts) > 2 else None
    if own in (None, "__init__"):
        return
    assert own in LEVEL, f"add preplay.{own} to LAYERS"
    for module in modules:
        if module.startswith("preplay.") and (other := module.split(".")[1]) in LEVEL and other != own:
            assert LEVEL[other] < LEVEL[own], f"preplay.{own} must not import preplay.{other}"


def test_no_empty_package():
    empty = [f for f in package_files() if f.name == "__init__.py" and not f.read_text().strip()]
    assert empty == []


def test_constraints_pin_every_package_by_name():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.!-]+", line)] == []
    assert "torch==2.13.0" in lines
