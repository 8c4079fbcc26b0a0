"""Write docs/api.md, the reference of the public API: python docs/make_api.py"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import lab2048

HEAD = """\
# The public API

Everything that `import lab2048` offers, from its docstrings (`python docs/make_api.py` writes this
page). Names are found when they are first used, so importing the package is quick. Whatever the
command line does is one of these calls; the table at the end says which.
"""
TITLES = {
    "lab2048.game": "The game",
    "lab2048.engine": "Many games",
    "lab2048.players": "Players",
    "lab2048.solver": "Solved boards",
    "lab2048.measure": "Measuring",
    "lab2048.data": "Move data",
    "lab2048.learn": "Learning",
    "lab2048.report": "Pages and pictures",
    "lab2048.cluster": "Clusters",
    "lab2048.studio": "The studio",
    "lab2048.bench": "Speed",
}


def reference() -> str:
    """Return the whole page."""
    parts, before = [HEAD], ""
    for module, names in lab2048._HOMES.items():
        title = TITLES[".".join(module.split(".")[:2])]
        if title != before:
            parts.append(f"## {title}\n")
            before = title
        parts += [entry(name) for name in names]
    return "\n".join([*parts, commands()])


def entry(name: str) -> str:
    """Return what the page says about a public name."""
    thing = getattr(lab2048, name)
    doc = inspect.cleandoc(thing.__doc__ or "")
    lines = [f"### `{name}`\n", f"```python\n{signature(name, thing)}\n```\n", markdown(doc)]
    if inspect.isclass(thing):
        lines += [member(found, each) for found, each in members(thing)]
    return "\n".join(lines) + "\n"


def signature(name: str, thing: Any) -> str:
    """Return how a thing is called, over several lines if it is long."""
    if inspect.ismodule(thing):
        return f"lab2048.{name}"
    try:
        found = str(inspect.signature(thing)).replace("'", "")
    except (TypeError, ValueError):
        return name
    found = re.sub(r"<function \S*<lambda> at 0x[0-9a-f]+>", "...", found)
    found = re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", found)
    text = f"{name}{found}"
    if len(text) <= 100:
        return text
    inside, _, result = found[1:].rpartition(")")
    return f"{name}(\n    " + ",\n    ".join(split(inside)) + f",\n){result}"


def split(text: str) -> list[str]:
    """Return the parts between commas that are in no brackets."""
    found, depth = [""], 0
    for sign in text:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return [each.strip() for each in found]


def members(cls: type) -> list[tuple[str, Any]]:
    """Return the public methods and properties that a class defines itself, in their order."""
    return [
        (name, thing)
        for name, thing in vars(cls).items()
        if not name.startswith("_")
        and (inspect.isfunction(thing) or isinstance(thing, property | classmethod))
        and inspect.getdoc(getattr(cls, name))
    ]


def member(name: str, thing: Any) -> str:
    """Return a line about a method or a property: the first line of its docstring."""
    doc = inspect.getdoc(thing) or ""
    first = " ".join(doc.partition("\n\n")[0].split())
    call = "" if isinstance(thing, property) else "()"
    return f"- `{name}{call}`: {first}"


def markdown(doc: str) -> str:
    """Return a docstring with its examples fenced."""
    text, fenced = [], False
    for line in doc.splitlines():
        begins = line.startswith(">>>")
        if begins and not fenced:
            text.append("```python")
            fenced = True
        elif fenced and not line.strip():
            text.append("```")
            fenced = False
        text.append(line)
    return "\n".join(text + ["```"] * fenced) + "\n"


def commands() -> str:
    """Return the table of commands and the Python call of each."""
    lines = ["## Commands, and their calls in Python\n", "| command | in Python |", "|:--|:--|"]
    for words, command in leaves():
        call = (command.epilog or "").removeprefix("In Python: ")
        lines.append(f"| `{' '.join(words)}` | `{call}` |")
    return "\n".join(lines) + "\n"


def leaves() -> list[tuple[list[str], Any]]:
    """Return all commands with the words that call them."""
    import typer

    from lab2048.cli.app import app

    found: list[tuple[list[str], Any]] = []

    def walk(command: Any, words: list[str]) -> None:
        if hasattr(command, "commands"):
            for name in command.list_commands(None):
                walk(command.get_command(None, name), [*words, name])
        else:
            found.append((words, command))

    walk(typer.main.get_command(app), ["lab2048"])
    return found


def checked(call: str) -> None:
    """Raise an error unless a call can be made as it is printed, after `import lab2048` alone.

    Its names are found from `lab2048`, and its arguments fit what it calls; it is not made.
    """
    names = [node for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Name)]
    assert {name.id for name in names} == {"lab2048"}, call
    for node in ast.walk(ast.parse(call)):
        if isinstance(node, ast.Call) and _is_path(node.func):
            target = eval(ast.unparse(node.func), {"lab2048": lab2048})
            keywords = {each.arg: None for each in node.keywords if each.arg}
            inspect.signature(target).bind(*node.args, **keywords)


def _is_path(node: ast.expr) -> bool:
    """Whether an expression is names and dots alone."""
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_path(node.value))


if __name__ == "__main__":
    Path(__file__).with_name("api.md").write_text(reference())
