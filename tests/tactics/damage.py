"""What happens to a log between the builder and the reader: each damage takes physical lines and leaves physical lines."""

from __future__ import annotations

import bisect


def _some(rng, lines, share=40):
    """A few indices, at least one."""
    return sorted(rng.sample(range(len(lines)), min(len(lines), 1 + rng.randrange(1 + len(lines) // share))))


def _changed(rng, lines, change):
    chosen = set(_some(rng, lines))
    return [change(line) if i in chosen else line for i, line in enumerate(lines)]


def cut_beginning(rng, lines):
    """From any character on."""
    text = "\n".join(lines)
    return text[rng.randrange(len(text)) :].split("\n")


def cut_end(rng, lines):
    """To any character."""
    text = "\n".join(lines)
    return text[: rng.randrange(1, len(text))].split("\n")


def cut_lines(rng, lines):
    """Some lines lack their end."""
    return _changed(rng, lines, lambda line: line[: rng.randrange(len(line) + 1)])


def cut_beginnings(rng, lines):
    """Some lines lack their beginning."""
    return _changed(rng, lines, lambda line: line[rng.randrange(len(line) + 1) :])


def drop_lines(rng, lines):
    dropped = set(_some(rng, lines, share=10))
    return [line for i, line in enumerate(lines) if i not in dropped]


def double_lines(rng, lines):
    doubled = set(_some(rng, lines, share=10))
    return [line for i, line in enumerate(lines) for _ in range(1 + (i in doubled))]


def swap_neighbours(rng, lines):
    """As two streams merged out of order leave them."""
    lines = list(lines)
    for i in _some(rng, lines[1:], share=10):
        lines[i], lines[i + 1] = lines[i + 1], lines[i]
    return lines


def join_lines(rng, lines):
    """Some line feeds are lost."""
    joined = set(_some(rng, lines[1:]))
    text = "".join(line + ("" if i in joined else "\n") for i, line in enumerate(lines))
    return text.rstrip("\n").split("\n")


def tear_lines(rng, lines):
    """A line is printed within another, whose rest follows in a line of its own."""
    lines = list(lines)
    for i in reversed(_some(rng, lines[1:])):
        at = rng.randrange(len(lines[i]) + 1)
        lines[i : i + 2] = [lines[i][:at] + lines[i + 1], lines[i][at:]]
    return lines


def split_lines(rng, lines):
    """Some lines are broken in two."""
    broken = []
    chosen = set(_some(rng, lines))
    for i, line in enumerate(lines):
        at = rng.randrange(len(line) + 1) if i in chosen else 0
        broken += [line[:at], line[at:]] if at else [line]
    return broken


def spoil(character):
    """Some characters turn into another one."""

    def damage(rng, lines):
        def change(line):
            at = rng.randrange(len(line)) if line else 0
            return line[:at] + character + line[at + 1 :]

        return _changed(rng, lines, change)

    return damage


def column_cut(rng, lines):
    """Each line ends at a column (`cut -c`)."""
    width = min([_column(rng, lines), *(length - 1 for length in sorted(map(len, lines))[-2:-1])])  # one line alone does not tell it
    return [line[:width] for line in lines]


def wrap(rng, lines):
    """Each line goes on in the next one from a column on (`fold`), its blanks kept or not."""
    width = _column(rng, lines)
    strip = rng.random() < 0.5
    pieces = [line[i : i + width] for line in lines for i in range(0, max(len(line), 1), width)]
    return [piece.rstrip(" ") if strip else piece for piece in pieces]


def dots(rng, lines):
    """Longer lines end with dots at a column."""
    width = _column(rng, lines)
    mark = rng.choice(["...", "…", " ...", ".."])
    return [line if len(line) <= width else line[: width - len(mark)] + mark for line in lines]


def middle_dots(rng, lines):
    """Longer lines have their middle replaced, as a pager or a chat leaves them."""
    width = _column(rng, lines)
    return [line if len(line) <= width else line[: width // 2] + "..." + line[-(width // 2) :] for line in lines]


def _column(rng, lines):
    """A column at which some line is longer, and the prefix of most is not."""
    return rng.randrange(60, max(61, min(240, max(map(len, lines), default=0) + 10)))


def omit_middle(rng, lines):
    """A viewer shows the two ends only."""
    first, last = sorted(rng.randrange(len(lines) + 1) for _ in range(2))
    return [*lines[:first], *rng.choice([[], ["..."], [f"[... {last - first} lines omitted ...]"]]), *lines[last:]]


def grep(rng, lines):
    """Only lines that hold one of some words."""
    words = rng.sample(["Tactic", "Sparsity", "Timing", "Autotuning", "Layer", "Chose", "[TRT]", "[V]", "sparse"], 3)
    kept = [line for line in lines if any(word in line for word in words)]
    return kept or list(lines)


def shuffle_near(rng, lines):
    """Lines that arrive late, as a log collector sorts them by second."""
    return [line for _, line in sorted((i + rng.uniform(0, 3), line) for i, line in enumerate(lines))]


def foreign_lines(rng, lines):
    """Another program prints between them."""
    words = [
        "Epoch 3: 12%|#  | 3/25 [00:01<00:09]",
        "",
        "Saving, please wait",
        "Using device: cuda:0",
        "WARNING: something, else",
        "}",
        "...",
        "INFO: done",
    ]
    at = sorted(rng.randrange(len(lines) + 1) for _ in range(1 + rng.randrange(5)))
    return [
        line
        for i in range(len(lines) + 1)
        for line in [*[rng.choice(words)] * (bisect.bisect(at, i) - bisect.bisect_left(at, i)), *lines[i : i + 1]]
    ]


DAMAGES = {
    "cut-beginning": cut_beginning,
    "cut-end": cut_end,
    "cut-lines": cut_lines,
    "cut-beginnings": cut_beginnings,
    "drop-lines": drop_lines,
    "double-lines": double_lines,
    "swap-neighbours": swap_neighbours,
    "join-lines": join_lines,
    "tear-lines": tear_lines,
    "split-lines": split_lines,
    "invalid-byte": spoil("\ufffd"),
    "nul": spoil("\0"),
    "column-cut": column_cut,
    "wrap": wrap,
    "dots": dots,
    "middle-dots": middle_dots,
    "omit-middle": omit_middle,
    "grep": grep,
    "shuffle-near": shuffle_near,
    "foreign-lines": foreign_lines,
}
FOLDS = {"column-cut", "wrap", "dots", "middle-dots"}
"""Done to all lines."""
