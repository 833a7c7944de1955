"""What a rich renderable looks like in a terminal of 80 columns."""

import io

from rich.console import Console, RenderableType


def printed(shown: RenderableType) -> list[str]:
    """Its lines, without trailing blanks."""
    output = io.StringIO()
    Console(width=80, file=output).print(shown)
    return [line.rstrip() for line in output.getvalue().splitlines()]
