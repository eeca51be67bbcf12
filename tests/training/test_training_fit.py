from __future__ import annotations

import csv

import numpy as np
import pytest
import torch
from torch import nn

from pipeline import training
from pipeline.errors import InputError, StageError
from pipeline.training import objectives
from pipeline.training.resume import digest


class Blobs:
    """Points around three centres; a second head holds their distance from zero."""

    def __init__(self, n=96, seed=0):
        rng = np.random.default_rng(seed)
        self.label = np.arange(n) % 3
        self.x = (rng.normal(size=(n, 8)) + 3.0 * np.eye(8)[self.label]).astype(np.float32)

    def __len__(self):
        return len(self.x)

    def batch(self, index):
        x = self.x[index]
        return {"x": x}, {"label": self.label[index].astype(np.int64), "norm": np.linalg.norm(x, axis=1).astype(np.float32)}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.body(x))


class Stop(Exception):
    pass


PHASE = {"name": "dense", "epochs": 4, "batch_size": 20, "lr": 0.1, "weight_decay": 1e-3}
HEADS = {"label": "accuracy"}


def model(seed=0):
    torch.manual_seed(seed)
    return Net()


def fit(net, folder, split=None, heads=HEADS, select=None, progress=None, attach=None, seed=5, threads=1, **phase):
    more = {"progress": progress} if progress else {}
    return training.fit(
        net,
        split or Blobs(),
        heads=heads,
        phase=PHASE | phase,
        seed=seed,
        device="cpu",
        threads=threads,
        attach=attach,
        select=select,
        folder=folder,
        **more,
    )


def stop_after(epochs):
    def progress(task, done, total=None, text=""):
        if done > epochs:
            raise Stop

    return progress


def weights(net):
    return digest(net.state_dict())


def test_training_learns_and_says_so(tmp_path):
    net = model()
    seen = []
    history = fit(net, tmp_path, select=Blobs(60, seed=1), epochs=8, progress=lambda *report: seen.append(report))
    outputs = training.predict(net, Blobs(60, seed=2), heads=HEADS)["label"]
    assert (outputs.argmax(axis=1) == Blobs(60, seed=2).label).mean() > 0.85
    assert history.rows[-1].loss < 0.5 * history.rows[0].loss
    assert (history.kept_epoch, history.resumed_from) == (8, 0)
    assert seen[0][0] == "train dense" and seen[-1][1:3] == (8.0, 8) and "select" in seen[-1][3]


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tmp_path):
    nets = [model(), model(), model()]
    for number, (net, seed) in enumerate(zip(nets, (5, 5, 6))):
        np.random.seed(number)
        torch.manual_seed(number)
        fit(net, tmp_path / str(number), seed=seed)
    one, again, other = map(weights, nets)
    assert one == again != other


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("epochs", [0.5, 1.5, 3.9])
def test_an_interrupted_phase_ends_with_the_same_weights(tmp_path, optimizer, epochs):
    whole = model()
    expected = fit(whole, tmp_path / "whole", select=Blobs(30, 1), optimizer=optimizer)
    with pytest.raises(Stop):
        fit(model(), tmp_path / "cut", select=Blobs(30, 1), optimizer=optimizer, progress=stop_after(epochs))
    resumed = model()
    history = fit(resumed, tmp_path / "cut", select=Blobs(30, 1), optimizer=optimizer)
    assert weights(resumed) == weights(whole)
    assert history.resumed_from == int(epochs)
    assert [(row.epoch, row.loss, row.score, row.lr) for row in history.rows] == [(r.epoch, r.loss, r.score, r.lr) for r in expected.rows]


def test_a_finished_phase_is_not_trained_again(tmp_path):
    fit(model(), tmp_path)
    calls = []
    again = model()
    assert fit(again, tmp_path, progress=lambda *report: calls.append(report)).resumed_from == 4
    assert calls == []


@pytest.mark.parametrize("change", [{"lr": 0.2}, {"seed": 6}, {"split": Blobs(90)}, {"epochs": 5}])
def test_the_state_of_another_start_is_not_taken_up(tmp_path, change):
    fit(model(), tmp_path)
    assert fit(model(), tmp_path, **change).resumed_from == 0


def test_the_state_of_other_first_weights_is_not_taken_up(tmp_path):
    fit(model(), tmp_path)
    assert fit(model(seed=1), tmp_path).resumed_from == 0


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-40], lambda data: b"x" * 100])
def test_a_damaged_state_begins_the_phase_again(tmp_path, damage):
    whole = model()
    fit(whole, tmp_path)
    state = tmp_path / "dense.resume"
    state.write_bytes(damage(state.read_bytes()))
    again = model()
    assert fit(again, tmp_path).resumed_from == 0
    assert weights(again) == weights(whole)


def test_clearing_removes_states_and_cut_off_writes_and_nothing_else(tmp_path):
    fit(model(), tmp_path)
    (tmp_path / ".dense.resume.abc").write_bytes(b"cut")
    training.clear(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["history.csv"]


def test_a_disk_that_is_full_leaves_the_last_state_whole(tmp_path, monkeypatch):
    with pytest.raises(Stop):
        fit(model(), tmp_path, progress=stop_after(2.5))
    import os

    def full(descriptor):
        raise OSError(28, "No space left on device")

    before = (tmp_path / "dense.resume").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            fit(model(), tmp_path)
    assert (tmp_path / "dense.resume").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dense.resume", "history.csv"]
    assert fit(model(), tmp_path).resumed_from == 2


def test_masks_are_held_through_an_interruption(tmp_path):
    mask = torch.arange(8).remainder(4) < 2

    def attached(net):
        def attach(optimizer):
            def zero(*_):
                with torch.no_grad():
                    net.body[0].weight.mul_(mask)

            zero()
            optimizer.register_step_post_hook(zero)

        return attach

    whole, cut, resumed = model(), model(), model()
    fit(whole, tmp_path / "whole", attach=attached(whole))
    with pytest.raises(Stop):
        fit(cut, tmp_path / "cut", attach=attached(cut), progress=stop_after(2.5))
    fit(resumed, tmp_path / "cut", attach=attached(resumed))
    assert weights(whole) == weights(resumed)
    assert torch.count_nonzero(whole.body[0].weight[:, ~mask]) == 0 and torch.count_nonzero(whole.body[0].weight[:, mask]) > 0


def test_the_csv_has_every_phase_and_no_row_twice(tmp_path):
    with pytest.raises(Stop):
        fit(model(), tmp_path, select=Blobs(30, 1), progress=stop_after(2.5))
    fit(model(), tmp_path, select=Blobs(30, 1))
    fit(model(), tmp_path, name="finetune", epochs=2)
    rows = list(csv.DictReader((tmp_path / "history.csv").open(newline="")))
    assert [(row["phase"], row["epoch"]) for row in rows] == [("dense", str(i)) for i in (1, 2, 3, 4)] + [
        ("finetune", "1"),
        ("finetune", "2"),
    ]
    assert 0 <= float(rows[0]["score"]) <= 1 and rows[-1]["score"] == ""
    assert list(rows[0]) == ["phase", "epoch", "loss", "score", "lr", "seconds"]


def test_the_best_epoch_is_kept_through_an_interruption(tmp_path):
    whole, resumed = model(), model()
    history = fit(whole, tmp_path / "whole", select=Blobs(30, 1), keep="best", epochs=6, lr=0.5)
    scores = [row.score for row in history.rows]
    assert scores[history.kept_epoch - 1] == max(scores)
    with pytest.raises(Stop):
        fit(model(), tmp_path / "cut", select=Blobs(30, 1), keep="best", epochs=6, lr=0.5, progress=stop_after(4.5))
    fit(resumed, tmp_path / "cut", select=Blobs(30, 1), keep="best", epochs=6, lr=0.5)
    assert weights(whole) == weights(resumed)
    score = objectives.OBJECTIVES["accuracy"].score(training.predict(whole, Blobs(30, 1), heads=HEADS)["label"], Blobs(30, 1).label)
    assert score == max(scores)


class TwoHeads(Net):
    def __init__(self, form):
        super().__init__()
        self.norm, self.form = nn.Linear(16, 1), form

    def forward(self, x):
        hidden = self.body(x)
        return self.form(self.head(hidden), self.norm(hidden))


FORMS = {
    "tuple": lambda label, norm: (label, norm),
    "list": lambda label, norm: [label, norm],
    "dict": lambda label, norm: {"norm": norm, "label": label},
}


@pytest.mark.parametrize("form", FORMS)
def test_several_heads_train_together(tmp_path, form):
    torch.manual_seed(0)
    net = TwoHeads(FORMS[form])
    heads = {"label": "accuracy", "norm": "mse"}
    rows = fit(net, tmp_path, heads=heads, select=Blobs(30, 1), epochs=12, lr=0.03).rows
    found = training.predict(net, Blobs(60, 2), heads=heads)
    assert {head: value.shape for head, value in found.items()} == {"label": (60, 3), "norm": (60, 1)}
    assert rows[-1].loss < 0.6 * rows[0].loss and rows[-1].score > rows[0].score


@pytest.mark.parametrize(
    ("heads", "net", "message"),
    [
        ({"label": "accuracy", "norm": "mse"}, Net, "1 outputs, the recipe names 2 heads"),
        ({"colour": "accuracy"}, lambda: TwoHeads(FORMS["dict"]), "no output 'colour'"),
        ({"norm": "accuracy"}, Net, "class"),
        ({"label": "mse"}, Net, "same number of values"),
        ({"label": "f1"}, Net, "no training objective for the metric 'f1'"),
    ],
)
def test_heads_that_do_not_fit_the_model_are_refused(tmp_path, heads, net, message):
    class Wide(Blobs):
        def batch(self, index):
            inputs, targets = super().batch(index)
            return inputs, targets | {"norm": targets["norm"] * 1000}

    with pytest.raises(InputError, match=message):
        fit(net(), tmp_path, split=Wide(), heads=heads)


def test_a_class_that_the_model_does_not_score_is_named(tmp_path):
    class More(Blobs):
        def batch(self, index):
            inputs, targets = super().batch(index)
            return inputs, {"label": targets["label"] + 1}

    with pytest.raises(InputError, match=r"scores 3 classes \(0 to 2\), the data has class 3"):
        fit(model(), tmp_path, split=More())


def test_a_loss_that_is_no_number_stops_with_its_place(tmp_path):
    with pytest.raises(StageError, match=r"the loss is (nan|inf) in epoch") as caught:
        fit(model(), tmp_path, heads={"norm": "mse"}, split=Endless(), batch_size=96)
    assert caught.value.where == "train, phase dense" and "lower lr" in caught.value.hint


class Endless(Blobs):
    def batch(self, index):
        inputs, _ = super().batch(index)
        return inputs, {"norm": np.full((len(index), 3), np.inf, np.float32)}


def test_the_augmented_batch_is_trained_on_and_the_plain_one_scored(tmp_path):
    class Augmented(Blobs):
        drawn: list[float] = []

        def augmented(self, index, rng):
            self.drawn.append(rng.random())
            return self.batch(index)

    fit(model(), tmp_path / "1", split=Augmented(), select=Augmented(30, 1))
    first = list(Augmented.drawn)
    Augmented.drawn.clear()
    fit(model(), tmp_path / "2", split=Augmented(), select=Augmented(30, 1))
    assert first == Augmented.drawn and len(first) == 4 * 5 and len(set(first)) == len(first)


def test_reading_ahead_changes_nothing_but_the_threads(tmp_path):
    import threading

    class Augmented(Blobs):
        reads_ahead = False
        threads: set[str] = set()

        def augmented(self, index, rng):
            self.threads.add(threading.current_thread().name)
            inputs, targets = self.batch(index)
            return {"x": inputs["x"] + rng.normal(scale=0.1, size=inputs["x"].shape).astype(np.float32)}, targets

    class Ahead(Augmented):
        reads_ahead = True
        threads: set[str] = set()

    plain, ahead = model(), model()
    fit(plain, tmp_path / "plain", split=Augmented())
    fit(ahead, tmp_path / "ahead", split=Ahead())
    assert weights(plain) == weights(ahead)
    assert Augmented.threads == {"MainThread"} and "MainThread" not in Ahead.threads


def test_an_error_while_reading_ahead_reaches_the_caller(tmp_path):
    class Broken(Blobs):
        reads_ahead = True

        def batch(self, index):
            raise InputError("cannot read the image", where="a.png")

    with pytest.raises(InputError, match="cannot read the image"):
        fit(model(), tmp_path, split=Broken())


def test_global_generators_and_threads_are_as_before(tmp_path):
    import random

    net = model()
    torch.set_num_threads(1)
    python, arrays, tensors = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()
    fit(net, tmp_path, threads=2)
    assert random.getstate() == python and np.random.get_state()[1].tolist() == arrays
    assert torch.equal(torch.get_rng_state(), tensors)
    assert torch.get_num_threads() == 1


def test_zero_epochs_leave_the_model_as_it_is(tmp_path):
    net = model()
    before = weights(net)
    history = fit(net, tmp_path, epochs=0)
    assert weights(net) == before and history.rows == [] and history.kept_epoch == 0


def test_mixed_precision_trains_float32_weights(tmp_path):
    net = model()
    rows = fit(net, tmp_path, precision="bf16", epochs=6).rows
    assert {value.dtype for value in net.parameters()} == {torch.float32}
    assert rows[-1].loss < 0.6 * rows[0].loss


def test_gradients_are_clipped_to_the_norm(tmp_path):
    net, start = model(), model()
    fit(net, tmp_path, epochs=1, batch_size=96, momentum=0.0, weight_decay=0.0, lr=1.0, schedule="constant", clip_norm=0.01)
    moved = torch.cat([(a - b).detach().flatten() for a, b in zip(net.parameters(), start.parameters())])
    assert 0.005 < float(moved.norm()) <= 0.0101


def test_weight_decay_spares_biases_and_norms(tmp_path):
    def drift(weight_decay):
        net = model()
        net.body[1].weight.data.fill_(3.0)
        fit(
            net, tmp_path / str(weight_decay), epochs=1, batch_size=96, lr=0.1, momentum=0.0, schedule="constant", weight_decay=weight_decay
        )
        return net

    none, strong = drift(0.0), drift(1.0)
    assert torch.equal(none.body[1].weight, strong.body[1].weight)
    assert strong.body[0].weight.norm() < none.body[0].weight.norm()


def test_prediction_is_in_order_in_eval_mode_and_leaves_the_mode(tmp_path):
    net = model().train()
    whole = training.predict(net, Blobs(50), heads=HEADS, batch_size=7)["label"]
    assert net.training and whole.dtype == np.float32
    expected = training.forward(net, Blobs(50).batch(np.arange(50))[0], heads=HEADS)["label"]
    assert np.allclose(whole, expected, atol=1e-6)
