"""Whatever happens to a log: what is read of a layer never contradicts what the whole log says of it, and no name is false."""

from __future__ import annotations

import random

import damage
import pytest
import synthetic_log as synthetic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline import tactics
from pipeline.errors import InputError

RUNGS = ("eligible", "timed", "selected")
LEAVING_OUT = {"drop-lines", "omit-middle", "grep"}
"""Where the line of a layer's only sparse tactic is gone without a trace, nothing tells that it was timed."""


def layers_of(folder, lines, *, ended=True):
    path = folder / "build.log"
    path.write_bytes(("\n".join(lines) + ("\n" if ended else "")).encode())
    try:
        return [layer for build in tactics.read([str(path)]).builds for layer in build.layers]
    except InputError as error:
        assert "no TensorRT build found" in str(error)
        return []


def assert_nothing_false(folder, version, prefix, seed, verbose, kinds):
    rng = synthetic.new(seed)
    truth = synthetic.write(rng, version, prefix, rng.randint(1, 8), verbose=verbose)
    lines = truth.lines
    for kind in kinds:
        lines = damage.DAMAGES[kind](rng, lines)
    whole = {layer.name: layer for layer in layers_of(folder, truth.lines)}
    for layer in layers_of(folder, lines, ended="cut-end" not in kinds):
        assert layer.name in whole, f"{layer.name} is no layer"
        for rung in RUNGS:
            true, read = (getattr(found, rung).value for found in (whole[layer.name], layer))
            if {true, read} == {"yes", "no"}:
                assert rung == "timed" and read == "no" and LEAVING_OUT & set(kinds), f"{layer.name}: {rung} {true}, read as {read}"


def on_lines(verbose):
    """Damages that leave most lines as they are. A summary line that lacks its end tells so only where tables name the layers."""
    return sorted(set(damage.DAMAGES) - damage.FOLDS - (set() if verbose else {"cut-lines"}))


def checked(examples):
    """The same examples on each run: among millions of damaged logs some are read falsely that nothing in them tells from whole ones."""
    return settings(max_examples=examples, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])


builds = {
    "version": st.sampled_from(synthetic.OLD_VERSIONS + synthetic.VERSIONS),
    "prefix": st.sampled_from(sorted(synthetic.PREFIXES)),
    "seed": st.integers(0, 1_000_000),
    "verbose": st.booleans(),
}


@pytest.mark.parametrize("kind", sorted(damage.DAMAGES))
@checked(20)
@given(**builds)
def test_a_damaged_log_says_nothing_false(tmp_path, kind, version, prefix, seed, verbose):
    assert_nothing_false(tmp_path, version, prefix, seed, verbose or kind == "cut-lines", [kind])


@checked(120)
@given(**builds, data=st.data())
def test_a_log_damaged_twice_says_nothing_false(tmp_path, version, prefix, seed, verbose, data):
    first = data.draw(st.sampled_from(on_lines(verbose)))
    second = data.draw(st.sampled_from(sorted(damage.FOLDS) if verbose else on_lines(verbose)))
    assert_nothing_false(tmp_path, version, prefix, seed, verbose, [first, second])


@pytest.mark.parametrize("prefix", ["bare", "jetson"])
@pytest.mark.parametrize("version", ["8.6", "10.3", "11.1"])
def test_a_column_cut_is_told_where_no_prefix_tells_what_begins_a_message(tmp_path, version, prefix):
    truth = synthetic.write(synthetic.new(11), version, prefix, 5)
    names = {layer.name for layer in truth.layers}
    for width in range(56, 160, 4):
        assert {layer.name for layer in layers_of(tmp_path, [line[:width] for line in truth.lines])} <= names, width


@pytest.mark.soak
def test_hardly_one_of_thousands_of_logs_damaged_at_random_says_something_false(tmp_path):
    """A foreign line or a lost line feed can make one name of two: about one log in two thousand."""
    rng, tried, wrong = random.Random(), 10_000, []
    for _ in range(tried):
        verbose = rng.random() < 0.8
        kinds = [rng.choice(on_lines(verbose)), rng.choice(sorted(damage.FOLDS) if verbose else on_lines(verbose))][: rng.randint(1, 2)]
        case = (
            rng.choice(synthetic.OLD_VERSIONS + synthetic.VERSIONS),
            rng.choice(sorted(synthetic.PREFIXES)),
            rng.getrandbits(32),
            verbose,
            kinds,
        )
        try:
            assert_nothing_false(tmp_path, *case)
        except AssertionError as error:
            wrong.append((case, str(error).splitlines()[0]))
    print(*wrong, sep="\n")
    assert len(wrong) < tried / 500
