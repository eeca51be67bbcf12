"""Real engines with a known extra cost, judged while another process loads a core on and off: `make soak`."""

from __future__ import annotations

import multiprocessing
import time

import numpy as np
import pytest

from pipeline import builders, latency
from pipeline.api import judge
from pipeline.builders.base import ArmRequest
from pipeline.judging import decided
from pipeline.records.evidence import Evidence

BUDGET = 1.03
RULES = [{"kind": "latency", "over": "dense", "at_most": BUDGET}]
WHOLE = 60.0
"""Seconds that one trial may take, warm-up and judgement included."""
SECONDS = 32.0
"""Planned; sampling ends at one and a half times this at the latest, after at most 10 s of warm-up."""
SHAPE = "batch=8"


def model(path):
    """Three matrix products with ReLU, 8 x 768."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes, weights, name = [], [], "x"
    for at in range(3):
        weights.append(numpy_helper.from_array((rng.standard_normal((768, 768)) / 28).astype(np.float32), f"w{at}"))
        nodes += [helper.make_node("MatMul", [name, f"w{at}"], [f"m{at}"]), helper.make_node("Relu", [f"m{at}"], [f"r{at}"])]
        name = f"r{at}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 768])
    y = helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 768])
    graph = helper.make_graph(nodes, "net", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def neighbour(stop):
    """Load a core on and off, half of the time."""
    rng = np.random.default_rng()
    while not stop.is_set():
        end = time.perf_counter() + rng.exponential(0.5)
        while time.perf_counter() < end:
            sum(range(5_000))
        time.sleep(rng.exponential(0.5))


class Slower:
    """Each inference of a real engine, followed by work of a known share of its time."""

    def __init__(self, sampler, share):
        self.sampler, self.share = sampler, share

    def block(self, count):
        times = np.empty(count)
        for at in range(count):
            began = time.perf_counter_ns()
            self.sampler.block(1)
            end = began + (time.perf_counter_ns() - began) * (1 + self.share)
            while time.perf_counter_ns() < end:
                pass
            times[at] = (time.perf_counter_ns() - began) / 1e6
        return {"host_latency": times}


@pytest.fixture(scope="module")
def sampler_of(tmp_path_factory):
    folder = tmp_path_factory.mktemp("soak")
    model(folder / "net.onnx")
    backend = builders.backend("onnxruntime", {"threads": 1})
    request = ArmRequest(arm="a", repeat=1, onnx=folder / "net.onnx", onnx_arm="a", sparse_weights=False, precision="fp32", profiles=[])
    engine = backend.build(request, folder / "built")
    feeds = {"x": np.random.default_rng(1).standard_normal((8, 768)).astype(np.float32)}
    sessions = []

    def make():
        sessions.append(backend.load(engine, folder / "built"))
        return sessions[-1].sampler(feeds)

    yield make
    for session in sessions:
        session.close()


@pytest.fixture(scope="module", autouse=True)
def busy():
    stop = multiprocessing.Event()
    process = multiprocessing.Process(target=neighbour, args=(stop,), daemon=True)
    process.start()
    yield
    stop.set()
    process.join()


def verdict_of(bench, sampler_of, share, seed):
    arms = {"sparse": Slower(sampler_of(), share), "dense": Slower(sampler_of(), 0.0), "dense@again": Slower(sampler_of(), 0.0)}
    enough = decided(RULES, Evidence(), 0.05)
    plan = latency.Plan(seconds=SECONDS, rounds=20)
    began = time.perf_counter()
    samples = latency.sample(arms, shape=SHAPE, plan=plan, seed=seed, decided=enough)
    row = judge(bench.evidence(samples=samples), RULES).rules[0]
    seconds = time.perf_counter() - began
    print(f"\n{share:.0%} extra: {row.outcome.value} {row.value} [{row.low}, {row.high}] {row.control}; {seconds:.0f} s; {row.why}")
    return row.outcome, seconds


@pytest.mark.soak
@pytest.mark.parametrize(
    ("share", "count", "never", "decided_at_least"),
    [(0.0, 4, "fail", 0), (0.01, 3, None, 0), (0.02, 3, None, 0), (0.05, 4, "pass", 0), (0.10, 10, "pass", 9)],
)
def test_known_extra_costs_are_judged_rightly(bench, sampler_of, share, count, never, decided_at_least):
    trials = [verdict_of(bench, sampler_of, share, seed) for seed in range(count)]
    outcomes = [outcome for outcome, _ in trials]
    wrong = "fail" if 1 + share < BUDGET else "pass"
    assert never is None or never not in outcomes
    # at alpha 0.05 a wrong one among three is already a rare event; two are none
    assert outcomes.count(wrong) <= 1
    assert sum(outcome != "inconclusive" and seconds <= WHOLE for outcome, seconds in trials) >= decided_at_least
