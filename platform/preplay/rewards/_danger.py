"""Dangerous operations found in the syntax tree, never by substring.

``print("os.system is evil")`` is harmless and ``from os import system as s; s("x")`` is not: names are followed
through imports, aliases, ``getattr`` and ``__import__``. A mere reference counts, since it can be called anywhere.
"""

import ast
import warnings
from dataclasses import dataclass
from functools import lru_cache

RISK_CLASSES = ("dynamic_code", "shell", "file_deletion")
_EXACT = {
    "eval": "dynamic_code",
    "exec": "dynamic_code",
    "os.system": "shell",
    "os.popen": "shell",
    "os.posix_spawn": "shell",
    "os.posix_spawnp": "shell",
    "pty.spawn": "shell",
    "subprocess.getoutput": "shell",
    "subprocess.getstatusoutput": "shell",
    "asyncio.create_subprocess_shell": "shell",
    "os.remove": "file_deletion",
    "os.unlink": "file_deletion",
    "os.rmdir": "file_deletion",
    "os.removedirs": "file_deletion",
    "os.truncate": "file_deletion",
    "shutil.rmtree": "file_deletion",
    "shutil.move": "file_deletion",
}
_PREFIXES = {"os.exec": "shell", "os.spawn": "shell"}
_SUBPROCESS = {f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen")}
_SHELLS = {"sh", "bash", "dash", "zsh", "cmd", "powershell"}
_DELETING_METHODS = {"unlink", "rmdir", "rmtree"}
_SAME_MODULE = {"posix": "os", "nt": "os", "builtins": ""}


@dataclass(frozen=True, order=True)
class DangerousCall:
    """Where (line, from 1), what (the resolved name) and of which of :data:`RISK_CLASSES`."""

    line: int
    name: str
    risk: str


@lru_cache(maxsize=1 << 14)
def dangerous_calls(code: str) -> tuple[DangerousCall, ...]:
    """Dangerous operations of Python source in the order of their lines; none where it does not parse."""
    tree = parse_python(code)
    if tree is None:
        return ()
    finder = _Finder()
    finder.visit(tree)
    return tuple(sorted(finder.found))


def parse_python(code: str) -> ast.Module | None:
    """The syntax tree, or None for what is no Python (including sources too deep for the parser)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Finder(ast.NodeVisitor):
    """Collects dangerous references; ``aliases`` maps local names to the qualified names they stand for."""

    def __init__(self):
        self.aliases: dict[str, str] = {}
        self.found: set[DangerousCall] = set()

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.asname:
                self.aliases[alias.asname] = alias.name
            else:
                top = alias.name.split(".")[0]
                self.aliases[top] = top

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            name = _canonical(f"{node.module or ''}.{alias.name}")
            self.aliases[alias.asname or alias.name] = name
            self._flag(name, node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if (name := self._resolve(node.value)) is not None:
            self.aliases.update({t.id: name for t in node.targets if isinstance(t, ast.Name)})
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = self._resolve(node.func)
        if name in _SUBPROCESS and _uses_shell(node):
            self._add(name, "shell", node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _DELETING_METHODS:
            self._add(name or f".{node.func.attr}", "file_deletion", node)
        if (looked_up := self._resolve(node)) is not None:
            self._flag(looked_up, node)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._flag(self._resolve(node), node)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._flag(self._resolve(node), node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """``globals()["eval"]``, ``__builtins__["exec"]``."""
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        holder = (
            ast.unparse(node.value) if isinstance(node.value, ast.Call | ast.Name | ast.Attribute) else ""
        )
        if isinstance(key, str) and ("globals" in holder or "builtins" in holder or "__dict__" in holder):
            self._flag(key, node)
        self.generic_visit(node)

    def _resolve(self, node: ast.expr) -> str | None:
        """Qualified name that an expression stands for, or None."""
        if isinstance(node, ast.Name):
            return _canonical(self.aliases.get(node.id, node.id))
        if isinstance(node, ast.Attribute):
            owner = self._resolve(node.value)
            return None if owner is None else _canonical(f"{owner}.{node.attr}")
        if isinstance(node, ast.Call):
            return self._resolve_lookup(node)
        return None

    def _resolve_lookup(self, call: ast.Call) -> str | None:
        """``__import__("os")``, ``importlib.import_module("os")``, ``getattr(os, "system")``."""
        function = self._resolve(call.func)
        texts = [
            a.value if isinstance(a, ast.Constant) and isinstance(a.value, str) else None for a in call.args
        ]
        if function in ("__import__", "importlib.import_module") and texts and texts[0]:
            return _canonical(texts[0])
        if function == "getattr" and len(texts) > 1 and texts[1]:
            owner = self._resolve(call.args[0])
            return None if owner is None else _canonical(f"{owner}.{texts[1]}")
        return None

    def _flag(self, name: str | None, node: ast.AST) -> None:
        if name is None:
            return
        prefix = next((risk for start, risk in _PREFIXES.items() if name.startswith(start)), None)
        if risk := _EXACT.get(name, prefix):
            self._add(name, risk, node)

    def _add(self, name: str, risk: str, node: ast.AST) -> None:
        self.found.add(DangerousCall(getattr(node, "lineno", 0), name, risk))


def _canonical(name: str) -> str:
    head, _, rest = name.partition(".")
    if head in _SAME_MODULE and rest:
        return f"{_SAME_MODULE[head]}.{rest}".lstrip(".")
    return name


def _uses_shell(call: ast.Call) -> bool:
    """``shell=`` anything but a literal False, or a shell as the program."""
    for keyword in call.keywords:
        value = keyword.value
        if keyword.arg == "shell" and not (isinstance(value, ast.Constant) and not value.value):
            return True
    first = call.args[0] if call.args else None
    if isinstance(first, ast.List | ast.Tuple) and first.elts:
        first = first.elts[0]
    return isinstance(first, ast.Constant) and str(first.value).rsplit("/", 1)[-1].split(" ")[0] in _SHELLS
