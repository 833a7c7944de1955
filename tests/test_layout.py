"""Guards of the layout: source roots stay plain folders, imports go one way along the data flow."""

import ast
import importlib
import re
import subprocess
import sys
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


LAZY = [f.parent for root in SOURCE_ROOTS for f in (ROOT / root).rglob("__init__.pyi")]


@pytest.mark.parametrize("package", LAZY, ids=lambda p: p.name)
def test_every_exported_name_is_there(package):
    root = next(root for root in SOURCE_ROOTS if package.is_relative_to(ROOT / root))
    module = importlib.import_module(".".join(package.relative_to(ROOT / root).parts))
    exported = re.findall(r"^from \.\w+ import \w+ as (\w+)$", (package / "__init__.pyi").read_text(), re.M)
    assert sorted(exported) == sorted(module.__all__)
    assert [name for name in exported if not hasattr(module, name)] == []


@pytest.mark.parametrize("arguments", [["--help"], ["config"], ["rehearse", "--help"], ["serve", "--help"]])
def test_what_needs_no_model_starts_without_the_heavy_libraries(arguments):
    code = (
        "import sys; from preplay.cli import main; sys.argv = ['preplay', *sys.argv[1:]]\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'torch', 'ray', 'sklearn', 'scipy', 'pandas'} & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert len(done.stdout) > 100
    assert done.stderr.splitlines()[-1] == "[]"


def test_constraints_pin_every_package_by_name():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.!-]+", line)] == []
    assert "torch==2.13.0" in lines
