"""Every form of message that the reader knows: one row each, with its versions and how well it is known.

A message is matched without its prefix. `FORMS` is tried through one dispatching expression; what a form means is said
once, in `builds`. Sources: TensorRT's own logs (level `seen`), trtexec's public source (`documented`), reports by
people (`said`), and forms expected from their neighbours (`inferred`).
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from pipeline.codes import Level


class Form(msgspec.Struct, frozen=True):
    """One form of message."""

    name: str
    first: str
    """The message's first character; empty where it varies."""
    needle: str
    """Text that the message must hold: a cheap test before the pattern."""
    pattern: str
    versions: str = "all"
    level: Level = Level.SEEN
    verbose: bool = False
    """Printed only at VERBOSE."""


ID = r"(?:0x[0-9a-fA-F]{1,16}|-?\d{1,20})"
MS = r"(?:\d{1,12}\.?\d{0,18}(?:[eE][-+]?\d{1,3})?|inf|nan)"

FORMS: tuple[Form, ...] = (
    # one run of trtexec
    Form(
        "banner", "&", "RUNNING", r"&&&& RUNNING TensorRT\.\S+ (?:\[TensorRT v(?P<version>\d{1,8})\] )?(?:\[\w+\] )?(?:# (?P<command>.*))?"
    ),
    Form("verdict", "&", "TensorRT.", r"&&&& (?P<word>PASSED|FAILED|WAIVED) TensorRT\.\S+[^#]*(?:# (?P<command>.*))?"),
    Form("load-closing", "E", "Engine loaded", r"Engine loaded in [\d.]+ sec\.?"),
    # what ends a build
    Form("closing", "E", "Engine ", r"Engine built in [\d.]+ sec\.?|Engine generation completed in [\d.]+ seconds"),
    Form("closing-polygraphy", "F", "engine building", r"Finished engine building in [\d.]+ sec"),
    Form(
        "build-failed", "", "ngine ", r"(?:Engine could not be created|Engine set up failed|Building engine failed|Failed to create engine)"
    ),
    Form("build-failed-polygraphy", "I", "Invalid Engine. ", r"Invalid Engine\. Please ensure the engine was built correctly"),
    Form("no-implementation", "", "Could not find any implementation for node", r".*"),
    # build options
    Form("option-sparsity", "S", "Sparsity: ", r"Sparsity: (?P<mode>Disabled|Enabled|Forced)$"),
    # the sparsity summary: read by `sparsity`, joined over wraps
    Form("sparsity", "(", "(Sparsity) ", r"\(Sparsity\) "),
    Form(
        "sparsity-forced",
        "-",
        "pruned",
        r"--sparsity=force pruned (?P<count>\d+) weights to be sparsity pattern",
        ">=9.1",
        Level.DOCUMENTED,
        True,
    ),
    # what people leave out
    Form(
        "gap",
        "",
        "",
        r"\W*(?:\.\.\.|…|(?:\d* ?lines?|output) (?:omitted|skipped|hidden|left out|truncated)|snip|cut)\W*$",
        level=Level.SAID,
    ),
    # autotuning
    Form("costs", "=", "Computing costs for", r"={9,} Computing costs for ?(?P<layer>.*)", verbose=True),
    Form("combination", "*", "Autotuning format", r"\*{9,} Autotuning format combination: ?(?P<format>.*?) ?\*{9,}$", verbose=True),
    Form("combination-cut", "*", "Autotuning format", r"\*{9,} Autotuning format combination", verbose=True),
    Form("reformat", "*", "Autotuning Reformat", r"\*{9,} Autotuning Reformat: ?.*", verbose=True),
    Form("runner", "-", "Timing Runner", r"-{9,} Timing Runner: (?P<layer>.*) \((?P<runner>[^()]*)\)$", verbose=True),
    Form("runner-cut", "-", "Timing Runner", r"-{9,} Timing Runner: ", verbose=True),
    Form(
        "tactic-named",
        "T",
        "Tactic Name: ",
        rf"Tactic Name: (?P<name>.*?) ?Tactic: (?P<id>{ID}) Time: (?P<ms>{MS})$",
        ">=8.6",
        verbose=True,
    ),
    Form("tactic-skipped", "T", " skipped. ", rf"Tactic: (?P<id>{ID}) skipped\. .*", "7.x", verbose=True),
    Form("tactic", "T", "Tactic: ", rf"Tactic: (?P<id>{ID}) [Tt]ime:? (?P<ms>{MS})$", verbose=True),
    Form(
        "fastest",
        "",
        "Fastest Tactic: ",
        rf"(?:(?P<layer>.*) \([^()]*\) profiling completed in [\d.e+-]+ seconds\. )?Fastest Tactic: (?P<id>{ID}) Time: (?P<ms>{MS})$",
        verbose=True,
    ),
    Form(  # 7.x names the runner and no id; without either the line was cut
        "set-name",
        "",
        "Set Tactic Name: ",
        rf"(?P<layer>.*?) (?:\((?P<runner>[^()]*)\) )?Set Tactic Name: (?P<name>\S*)(?: Tactic: (?P<id>{ID}))?(?(id)|(?(runner)|(?!)))$",
        "7.x to 8.5",
        verbose=True,
    ),
    Form("chose", ">", "Chose Runner", rf">{{9,}} Chose Runner Type: (?P<runner>\S*) Tactic: (?P<id>{ID})$", verbose=True),
    Form(
        "no-tactics",
        "",
        "alid tactics for",
        r"Skipping \S+: No valid tactics for .*|\S+ has no valid tactics for this config, skipping",
        verbose=True,
    ),
    Form(
        "skip-tactic",
        "",
        "kipping tactic",
        r".*?[Ss]kipping tactic (?P<id>\S+) due to .*",
        level=Level.SEEN,
    ),
    Form("device-request", "T", "Device request: ", r"Tactic Device request: .* Device memory is insufficient to use tactic\.?"),
    # an INT8 calibration engine in the same log
    Form(
        "calibration",
        "",
        "alibrat",
        r"Starting Calibration\b.*|Calibration completed in .*|Post Processing Calibration data in .*",
        "<=10.x",
    ),
    # other tools around TensorRT
    Form("deepstream-uid", "", "[UID", r".*\[UID(?: = | )(?P<uid>\d+)\].*"),
    # trtexec's profile as a table
    Form("profile-begin", "=", "=== Profile (", r"=== Profile \(\d+ iterations ?\) ===$"),
    # engine dump; since 8.4 `--dumpLayerInfo` prints the form of 10 at any level
    Form("dump-8", "E", "Engine Layer Information", r"Engine Layer Information:", "7.x to 8.6", verbose=True),
    Form("dump-10", "L", "Layers:", r"Layers:$", ">=10.0"),
    Form(
        "dump-8-layer",
        "L",
        "Layer(",
        rf"Layer\((?P<type>[^()]*)\): (?P<name>.*), Tactic: (?P<id>{ID}), (?P<io>.*)",
        "7.x to 8.6",
        verbose=True,
    ),
    Form("dump-10-layer", "N", "LayerType: ", r"Name: (?P<name>.*?), LayerType: (?P<type>[^,]*), (?P<rest>.*)", ">=10.0"),
)
"""In this order: the first that matches decides."""


COMPILED: dict[str, re.Pattern[str]] = {form.name: re.compile(form.pattern, re.DOTALL) for form in FORMS}
FREE_FORMS = frozenset(("set-name", "fastest", "skip-tactic", "no-tactics"))
"""Begin with any text, such as a layer's name; printed with a prefix wherever other messages are."""
TIMED = "Tact"
"""What stands in a line that times a tactic, at the beginning of most."""
LONGEST = 100
"""Characters of a message `Fastest Tactic: ...` or `R has no valid tactics ...`: a longer one has another at its end."""
VERBOSE_FORMS = frozenset(form.name for form in FORMS if form.verbose)

_BY_FIRST: dict[str, list[tuple[str, str]]] = {}
for _form in FORMS:
    _BY_FIRST.setdefault(_form.first, []).append((_form.name, _form.needle))


@lru_cache(maxsize=2)
def find_form(text: str) -> tuple[str, re.Match[str]] | None:
    """The form of a message and its match; None where the reader knows none.

    Kept for the last messages: whether a line begins a message is asked before what the message says.
    """
    for key in (text[:1], ""):
        for name, needle in _BY_FIRST.get(key, ()):
            if needle in text and (match := COMPILED[name].match(text)):
                return name, match
    return None
