"""The training loop: it learns, it is a function of its seed, and it picks up where it stopped."""

# ruff: noqa: E402 - torch is imported only where it is installed
from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from configurator.core.errors import UsageError
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.probe.checkpoint import Checkpoint, Stopped, StopRequest, stop_on_interrupt
from configurator.probe.induction import make
from configurator.probe.model import TinyModel, build
from configurator.probe.task import IGNORE, Task
from configurator.probe.train import Progress, Recipe, Run, evaluate, train

SMALL = GroupedQuery(d_model=16, n_heads=2, n_kv_heads=1, d_head=8)
TASK = Task(
    name="small", about="induction, small", vocab_size=12, length=16, make=make,
    one_layer_fails=True,
)  # fmt: skip
QUICK = Recipe(warmup_steps=5, rows=8, eval_every=10, held_out_rows=16)


def model(attention: GroupedQuery | Latent = SMALL, seed: int = 0) -> TinyModel:
    return build(attention, layers=2, vocab_size=TASK.vocab_size, seed=seed)


def trained(
    net: TinyModel,
    steps: int = 30,
    kept: Checkpoint | None = None,
    stop_after: int | None = None,
    seed: int = 0,
) -> Run:
    stop = StopRequest()

    def watch(now: Progress) -> None:
        stop.requested = now.step == stop_after

    return train(
        net, TASK, label="one", seed=seed, steps=steps, recipe=QUICK, kept=kept, stop=stop,
        watch=watch,
    )  # fmt: skip


def weights(net: TinyModel) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in net.parameters()])


def test_same_seed_same_weights_and_curve_another_seed_another() -> None:
    nets = [model(), model(), model(seed=1)]
    runs = [trained(nets[0]), trained(nets[1]), trained(nets[2], seed=1)]
    assert runs[0].curve == runs[1].curve
    assert torch.equal(weights(nets[0]), weights(nets[1]))
    assert runs[0].curve != runs[2].curve


def test_building_a_model_leaves_the_callers_random_state_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    model(seed=9)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("stop_after", [7, 10, 29])
def test_a_stopped_run_ends_as_an_uninterrupted_one(tmp_path: Path, stop_after: int) -> None:
    whole = model()
    expected = trained(whole)
    path = tmp_path / "run.checkpoint"
    with pytest.raises(Stopped) as stopped:
        trained(model(), kept=Checkpoint(path, {"n": 1}), stop_after=stop_after)
    assert (stopped.value.step, stopped.value.path) == (stop_after, path)
    resumed = model(seed=3)  # other weights: they must come from the file
    again = trained(resumed, kept=Checkpoint.resume(path, {"n": 1}))
    assert torch.equal(weights(resumed), weights(whole))
    assert again.curve == expected.curve
    assert again.accuracy == expected.accuracy


def test_a_checkpoint_of_another_experiment_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    Checkpoint(path, {"task": "copy"}).write()
    with pytest.raises(UsageError, match="was made with task='copy', this run has 'recall'"):
        Checkpoint.resume(path, {"task": "recall"})


def test_two_stopped_runs_are_both_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    for seed in (0, 1):
        kept = Checkpoint.resume(path, {}) if path.exists() else Checkpoint(path, {})
        stop = StopRequest()
        stop.requested = True
        with pytest.raises(Stopped):
            train(
                model(), TASK, label=f"seed {seed}", seed=seed, steps=30, recipe=QUICK, kept=kept,
                stop=stop,
            )  # fmt: skip
    assert set(Checkpoint.resume(path, {}).unfinished) == {"seed 0", "seed 1"}
    kept = Checkpoint.resume(path, {})
    kept.finish("seed 1", {})
    assert set(Checkpoint.resume(path, {}).unfinished) == {"seed 0"}
    assert [kept.steps_left(f"seed {seed}", 30) for seed in (0, 1, 2)] == [29, 0, 30]


def test_a_checkpoint_of_another_version_is_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "old"
    torch.save({"format": "mha-configurator training checkpoint 1", "settings": {}}, path)
    with pytest.raises(UsageError, match="of another version of this program"):
        Checkpoint.resume(path, {})


POINT = {"step": 1, "train_loss": 1.0, "loss": 1.0, "accuracy": 0.5}
RUN = {"label": "one", "seed": 0, "steps": 1, "seconds": 1.0, "loss": 1.0, "accuracy": 0.5,
       "params": 9, "curve": [POINT]}  # fmt: skip


@pytest.mark.parametrize(
    "kept",
    [
        {},
        RUN | {"curve": 3},
        RUN | {"curve": []},
        RUN | {"curve": ["x"]},
        RUN | {"curve": [POINT | {"step": "1"}]},
        RUN | {"seed": None},
        RUN | {"accuracy": 7.0},
        RUN | {"accuracy": float("nan")},
        RUN | {"params": 10**5000},
        RUN | {"more": 1},
        RUN | {"loss": torch.ones(2)},
    ],
)
def test_a_malformed_run_of_a_checkpoint_is_refused(kept: dict[str, object]) -> None:
    assert Run.from_dict(RUN).to_dict() == RUN
    with pytest.raises(UsageError, match="--resume"):
        Run.from_dict(kept)


def _broken(state: dict[str, Any], name: str) -> None:
    if name in ("moments", "shapes", "groups"):
        moments = state["optimizer"]["state"]
        if name == "moments":
            del moments[0]["exp_avg"]
        elif name == "shapes":
            moments[0]["exp_avg_sq"] = torch.zeros(3)
        else:
            del state["optimizer"]["state"]
    else:
        state[name] = {"step": "7", "losses": ["x"], "points": [1], "model": [], "seconds": None}[
            name
        ]


@pytest.mark.parametrize(
    "name", ["step", "losses", "points", "model", "seconds", "moments", "shapes", "groups"]
)
def test_a_malformed_state_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "run.checkpoint"
    with pytest.raises(Stopped):
        trained(model(), kept=Checkpoint(path, {}), stop_after=5)
    kept = Checkpoint.resume(path, {})
    _broken(kept.unfinished["one"], name)
    with pytest.raises(UsageError, match="does not fit this model"):
        trained(model(), kept=kept)


@pytest.mark.parametrize("settings", [{"n": torch.ones(2)}, {"n": {"m": torch.ones(2)}}, {}])
def test_settings_of_another_kind_are_another_experiment(
    tmp_path: Path, settings: dict[str, object]
) -> None:
    path = tmp_path / "run.checkpoint"
    Checkpoint(path, settings).write()
    with pytest.raises(UsageError, match="was made with n="):
        Checkpoint.resume(path, {"n": 1})


class _Harm:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (print, ("code from the file ran",))


def test_a_file_that_carries_code_is_refused_and_runs_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "evil"
    torch.save({"format": "mha-configurator training checkpoint 2", "x": _Harm()}, path)
    with pytest.raises(UsageError, match="is not a checkpoint of this program"):
        Checkpoint.resume(path, {})
    assert "ran" not in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 not a zip", b"\x80\x04."])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="is not a checkpoint of this program"):
        Checkpoint.resume(path, {})


def test_a_state_that_does_not_fit_the_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    with pytest.raises(Stopped):
        trained(model(), kept=Checkpoint(path, {}), stop_after=5)
    wider = GroupedQuery(d_model=32, n_heads=2, n_kv_heads=1, d_head=16)
    with pytest.raises(UsageError, match="does not fit this model"):
        trained(model(wider), kept=Checkpoint.resume(path, {}))


def test_first_interrupt_is_a_request_and_the_handler_is_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_on_interrupt() as stop:
        assert not stop.requested
        signal.raise_signal(signal.SIGINT)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_evaluate_scores_only_what_is_labelled() -> None:
    net = model()
    tokens = np.zeros((3, 4), np.int64)
    labels = np.full((3, 4), IGNORE)
    with torch.no_grad():
        says = int(net(torch.from_numpy(tokens))[0, 1].argmax())
    labels[0, 1], labels[1, 1] = says, (says + 1) % TASK.vocab_size
    loss, accuracy = evaluate(net, (tokens, labels), "cpu")
    assert accuracy == 0.5
    logits = net(torch.from_numpy(tokens))[0, 1].detach().log_softmax(-1)
    expected = -(logits[says] + logits[(says + 1) % TASK.vocab_size]) / 2
    assert loss == pytest.approx(float(expected), rel=1e-5)


def test_rate_rises_over_the_warm_up_and_falls_only_when_asked() -> None:
    recipe = Recipe(learning_rate=1.0, warmup_steps=4)
    assert [recipe.rate(i, 100) for i in (0, 1, 3, 99)] == [0.25, 0.5, 1.0, 1.0]
    falling = Recipe(learning_rate=1.0, warmup_steps=1, decay=True)
    assert falling.rate(0, 100) == 1.0
    assert falling.rate(99, 100) == pytest.approx(0.109)


def test_models_parameters_are_the_core_counts() -> None:
    latent = Latent(
        d_model=24, n_heads=3, kv_lora_rank=10, q_lora_rank=6, qk_nope_head_dim=8,
        qk_rope_head_dim=4, v_head_dim=8,
    )  # fmt: skip
    for attention in (SMALL, latent):
        total = sum(p.numel() for p in model(attention).parameters())
        norms = (2 + 1) * attention.d_model
        assert total == 2 * attention.params() + 2 * 12 * attention.d_model + norms
