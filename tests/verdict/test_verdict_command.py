"""`sparsegate gate`: exit codes, formats, baselines, and reports that fit where they go."""

from __future__ import annotations

import json
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from pipeline.cli import group, main
from pipeline.records.verdict import JudgedRule, RuleResult, Verdict
from pipeline.report import verdict_junit, verdict_md, verdict_text

ARMS = {"sparse": 4.0, "dense": 4.0, "dense@again": 4.0}
RULES = [{"kind": "latency", "over": "dense", "at_most": 1.05}, {"kind": "size", "size": "file", "at_most": 1000}]


def gate(folder, *more):
    return CliRunner().invoke(group, ["gate", str(folder), "--workspace", str(folder.parents[2]), *more])


@pytest.mark.parametrize(("sparse", "code"), [(4.0, 0), (4.6, 1), (4.2, 3)])
def test_the_exit_code_is_the_verdict(bench, made_samples, sparse, code):
    folder = bench.run(bench.evidence(samples=made_samples({**ARMS, "sparse": sparse})), RULES)
    assert gate(folder).exit_code == code
    assert gate("crafted" and folder, "--format", "json").exit_code == code


def test_a_run_is_found_by_name_and_left_alone(bench, made_samples):
    folder = bench.run(bench.evidence(samples=made_samples(ARMS)), RULES)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found = CliRunner().invoke(group, ["gate", "crafted", "--workspace", str(folder.parents[2])])
    assert found.exit_code == 0, found.output
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_every_format_says_the_same(bench, made_samples):
    folder = bench.run(bench.evidence(samples=made_samples({**ARMS, "sparse": 4.6})), RULES)
    text, md, junit, data = (gate(folder, "--format", style).stdout for style in ("text", "md", "junit", "json"))
    verdict = json.loads(data)
    assert verdict["schema"] == "sparsegate.verdict/1"
    assert verdict["outcome"] == "fail"
    assert text.startswith("FAIL  2 rules: 1 fail, 1 pass")
    assert "FAIL" in md.splitlines()[0]
    suite = ElementTree.fromstring(junit).find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    for rule in verdict["rules"]:
        if rule.get("value") is not None:
            assert f"{rule['value']:.4g}" in text
            assert f"{rule['value']:.4g}" in md


def test_json_is_byte_for_byte_alike(bench, made_samples):
    folder = bench.run(bench.evidence(samples=made_samples(ARMS)), RULES)
    assert gate(folder, "--format", "json").stdout_bytes == gate(folder, "--format", "json").stdout_bytes


def test_baselines_are_saved_and_used(bench, made_samples):
    folder = bench.run(bench.evidence(samples=made_samples(ARMS)), RULES)
    saved = gate(folder, "--save-baseline", "v1")
    assert saved.exit_code == 0
    assert (folder.parents[2] / "baselines" / "v1.json").is_file()
    assert "latency figures" in saved.stderr
    against = bench.run(bench.evidence(samples=made_samples(ARMS, seed=5)), [{"kind": "latency", "over": "baseline", "at_most": 1.05}])
    assert gate(against, "--baseline", "v1").exit_code == 0
    assert gate(against).exit_code == 3


def refused(capsys, folder, *more):
    with pytest.raises(SystemExit) as stopped:
        main(["gate", str(folder), "--workspace", str(folder.parents[2]), *more])
    assert stopped.value.code == 2, more
    return capsys.readouterr().err


@pytest.mark.parametrize("anew", [(), ("--replace",)])
@pytest.mark.parametrize("arm", ["nope", ""])
def test_an_arm_without_figures_leaves_the_stored_baseline_as_it_is(bench, made_samples, capsys, arm, anew):
    folder = bench.run(bench.evidence(samples=made_samples(ARMS)), RULES)
    stored = folder.parents[2] / "baselines" / "v1.json"
    assert f"no figure of an arm {arm!r}" in refused(capsys, folder, "--arm", arm, "--save-baseline", "v1", *anew)
    assert not stored.exists()
    assert gate(folder, "--save-baseline", "v1").exit_code == 0
    before = stored.read_bytes()
    assert "dense, dense@again, sparse" in refused(capsys, folder, "--arm", arm, "--save-baseline", "v1", *anew)
    assert stored.read_bytes() == before


@pytest.mark.parametrize("options", [("--arm", "dense"), ("--arm", "sparse"), ("--replace",)])
def test_how_a_baseline_is_stored_needs_one_to_store(bench, made_samples, capsys, options):
    folder = bench.run(bench.evidence(samples=made_samples(ARMS)), RULES)
    assert "needs --save-baseline NAME" in refused(capsys, folder, *options)


@pytest.mark.parametrize(
    ("section", "key", "field", "value"),
    [
        ("latency", 0, "value", -4.0),
        ("latency", 0, "low", 0.0),
        ("latency", 0, "confidence", -1.0),
        ("sizes", "file", None, 0),
        ("sizes", "file", None, -900),
        ("quality", 0, "value", -0.9),
        ("quality", 0, "n", 0),
    ],
)
def test_a_baseline_with_a_figure_that_no_run_has_is_refused_with_its_place(
    bench, made_samples, made_predictions, capsys, section, key, field, value
):
    both = {arm: made_predictions() for arm in ("sparse", "dense")}
    rules = [{"kind": "latency", "over": "baseline", "at_most": 1.05}]
    folder = bench.run(bench.evidence(samples=made_samples(ARMS), predictions=both), RULES)
    assert gate(folder, "--save-baseline", "v1").exit_code == 0
    path = folder.parents[2] / "baselines" / "v1.json"
    document = json.loads(path.read_text())
    holder, at = (document[section], key) if field is None else (document[section][key], field)
    holder = holder["estimate"] if section == "latency" else holder
    holder[at] = value
    path.write_text(json.dumps(document))
    edited = path.read_bytes()
    for options in (("--baseline", "v1"), ("--save-baseline", "v1")):
        message = refused(capsys, folder, *options)
        assert f"{section}[{key}]" in message and f"is {value:g}" in message and str(path) in message
    assert path.read_bytes() == edited
    bench.run(bench.evidence(samples=made_samples(ARMS), predictions=both), rules)
    assert "no run has such a figure" in refused(capsys, folder, "--baseline", "v1")


@pytest.mark.parametrize(
    ("field", "value", "refusal"), [("low", -0.5, None), ("value", -3.0, "energy[batch=8].value is -3"), ("high", 0.0, "high is 0")]
)
def test_a_stored_energy_is_above_0_though_its_lower_bound_need_not_be(tmp_path, field, value, refusal):
    from pipeline.errors import InputError
    from pipeline.records import io
    from pipeline.records.baseline import Baseline
    from pipeline.records.measurement import Estimate
    from pipeline.verdict.baseline import read

    estimate = Estimate(**{"value": 3.0, "low": 2.0, "high": 8.0, "confidence": 0.9, "n": 3, field: value})
    io.write(
        tmp_path / "b.json", Baseline(name="b", arm="sparse", recipe="r", run="r/1", backend="x", device="d", energy={"batch=8": estimate})
    )
    if refusal is None:
        assert read(tmp_path / "b.json").energy["batch=8"] == estimate
    else:
        with pytest.raises(InputError) as caught:
            read(tmp_path / "b.json")
        assert refusal in str(caught.value)


@pytest.mark.parametrize("option", ["--baseline", "--save-baseline"])
def test_an_empty_name_is_no_baseline(bench, made_samples, capsys, option):
    folder = bench.run(bench.evidence(samples=made_samples(ARMS)), RULES)
    assert "'' cannot name a baseline" in refused(capsys, folder, option, "")


def test_bad_input_is_one_message_and_exit_code_2(bench, made_samples, capsys):
    folder = bench.run(bench.evidence(samples=made_samples(ARMS)), RULES)
    workspace = str(folder.parents[2])
    for args in (
        ["gate", "nothing", "--workspace", workspace],
        ["gate", str(folder), "--baseline", "absent", "--workspace", workspace],
        ["gate", str(folder), "--baseline", "../x", "--workspace", workspace],
        ["gate", str(folder), "--recipe", "absent.yaml", "--workspace", workspace],
        ["gate", str(folder), "--set", "gate.alpha=0.1", "--workspace", workspace],
    ):
        with pytest.raises(SystemExit) as stopped:
            main(args)
        assert stopped.value.code == 2, args
        assert "Traceback" not in capsys.readouterr().err


def test_judging_imports_nothing_heavy(bench, made_samples):
    folder = bench.run(bench.evidence(samples=made_samples(ARMS)), RULES)
    code = (
        "import sys\nfrom pipeline.cli import main\n"
        f"try:\n    main(['gate', {str(folder)!r}])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'onnx', 'sklearn', 'modelopt', 'pydantic', 'pycuda', 'scipy', 'onnxruntime'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("heavy: []")


# ---- reports ---------------------------------------------------------------------------------------------------------

HOSTILE = "a\x1b[2J]|<img src=x>*`&\n\u202e"


def crafted(many=1, text="p50 of sparse"):
    rows = [
        JudgedRule(
            id=f"latency:{text}:{outcome.value}:{at}",
            kind="latency",
            outcome=outcome,
            text=text,
            why=f"because {text}",
            value=1.01,
            low=0.99,
            high=1.03,
            budget=1.05,
            unit="ratio",
            n=40,
            alpha=0.05,
            control="A/A 1.0 [0.99, 1.01]",
            needs="measure longer",
        )
        for at in range(many)
        for outcome in RuleResult
    ]
    return Verdict(outcome=RuleResult.FAIL, rules=rows, notes=["a note"])


def test_the_summary_fits_a_ci_page_whatever_the_number_of_rules():
    for many in (1, 50, 500):
        page = verdict_md.render(crafted(many, text="x" * 300))
        assert len(page.encode()) < 60_000
        assert "FAIL" in page.splitlines()[0]
    assert "more rules are in the JSON" in verdict_md.render(crafted(500))


def test_failures_come_first():
    text = verdict_text.render(crafted(2))
    assert text.index("fail") < text.index("inconclusive", 30)
    assert text.rstrip().splitlines()[-1].startswith("next: do not release")


def test_text_fits_its_width():
    for width in (80, 120):
        assert max(len(line) for line in verdict_text.render(crafted(3, text="a long rule " * 12), width).splitlines()) <= width


def test_junit_is_well_formed_and_has_a_case_per_rule():
    root = ElementTree.fromstring(verdict_junit.render(crafted(3)))
    cases = root.findall("testsuite/testcase")
    assert len(cases) == 9
    assert len(root.findall("testsuite/testcase/failure")) == 3
    assert len(root.findall("testsuite/testcase/error")) == 3
    assert "needs: measure longer" in root.find("testsuite/testcase/error").text


def test_names_are_never_markup():
    verdict = crafted(1, text=HOSTILE)
    junit = ElementTree.fromstring(verdict_junit.render(verdict, name=HOSTILE))
    assert "\x1b" not in junit.find("testsuite/testcase").get("name")
    page = verdict_md.render(verdict)
    assert "<img" not in page.replace("\\<img", "")
    for output in (page, verdict_text.render(verdict)):
        assert "\x1b" not in output
        assert "\u202e" not in output
