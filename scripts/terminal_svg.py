"""Draws terminal output as an SVG picture: `python3 scripts/terminal_svg.py OUT.svg "COMMAND" < output`.
For the pictures in README.md, so that they show what the program really printed."""

import html
import sys

CHAR_WIDTH, LINE_HEIGHT, MARGIN, COLUMNS = 7.8, 17, 16, 118


def wrapped(line):
    """Long lines continue on the next one, as a terminal would show them."""
    while len(line) > COLUMNS:
        yield line[:COLUMNS]
        line = line[COLUMNS:]
    yield line


def main():
    out, command = sys.argv[1], sys.argv[2]
    lines = ["$ " + command]
    for line in sys.stdin.read().rstrip("\n").split("\n"):
        lines.extend(wrapped(line))
    width = int(2 * MARGIN + COLUMNS * CHAR_WIDTH)
    height = int(2 * MARGIN + len(lines) * LINE_HEIGHT)
    rows = []
    for i, line in enumerate(lines):
        colour = "#7ee787" if i == 0 else "#ff7b72" if "deadlock:" in line or "out-of-bounds:" in line else "#e6edf3"
        y = MARGIN + (i + 1) * LINE_HEIGHT - 4
        rows.append(f'<text x="{MARGIN}" y="{y}" fill="{colour}" xml:space="preserve">{html.escape(line)}</text>')
    with open(out, "w", encoding="utf-8") as file:
        file.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
            f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>'
            f'<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13">' + "".join(rows) + "</g></svg>\n"
        )


if __name__ == "__main__":
    main()
