"""The benchmark of GPUs at its smallest size, on a CPU."""

import dataclasses
import json
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.gpu import busy
from benchmarks.gpu.__main__ import main, measure_all
from benchmarks.gpu.pong import Point, point_of, summary, thinned
from benchmarks.gpu.settings import Settings, Variant, variants
from benchmarks.gpu.transfers import transfers
from benchmarks.gpu.window import Row, Shares, is_full, shares
from kubebeast_observe.scrape import Scrape, parse_metrics


def test_every_load_trains_a_learner_and_its_times_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    main(["--tiny"])

    (path,) = tmp_path.glob("gpu-tiny-*.json")
    results = json.loads(path.read_text())["results"]
    assert path.with_suffix(".png").stat().st_size > 0
    assert [row["load"] for row in results["rows"]] == ["null", "atari"]
    for row, parts in zip(results["rows"], results["shares"], strict=True):
        assert row["steps_per_s"] > 0 and row["updates_per_s"] > 0 and row["rows_per_inference"] >= 1
        assert 0 < row["model_p50_ms"] <= row["model_p99_ms"]
        assert 0 < row["action_p50_ms"] <= row["action_p99_ms"]
        assert row["gpu_busy_percent"] == "no GPU"
        assert all(sum(parts[of].values()) > 0 for of in ("learner", "inference", "streams"))


def page(updates: int, waited_s: float, optimizer_s: float, model_s: float, env_s: float, action_s: float) -> Scrape:
    """Returns metrics of a learner with two inference threads and 0.1 s for each update."""
    text = f"""
kubebeast_updates_total {updates}
kubebeast_learner_waiting_seconds_total {waited_s}
kubebeast_update_seconds_sum{{phase="optimizer"}} {optimizer_s}
kubebeast_inference_threads 2
kubebeast_inference_batches_total {updates}
kubebeast_inference_seconds_sum{{phase="model"}} {model_s}
kubebeast_stream_env_seconds_sum {env_s}
kubebeast_stream_action_seconds_sum {action_s}
kubebeast_stream_action_seconds_count {updates}
"""
    return Scrape(taken_at_s=0.1 * updates, metrics=parse_metrics(text))


def test_shares_are_of_the_time_of_each_thread_and_of_all_streams() -> None:
    before = page(10, waited_s=1.0, optimizer_s=5.0, model_s=3.0, env_s=7.0, action_s=2.0)
    now = page(30, waited_s=1.5, optimizer_s=6.0, model_s=4.0, env_s=10.0, action_s=3.0)

    found = shares(Variant(load="null", network="shallow", precision="fp32", compile="off", graphs="off"), before, now)

    assert (found.learner["waiting"], found.learner["optimizer"]) == pytest.approx((0.25, 0.5))
    assert found.inference["model"] == pytest.approx(0.25)
    assert found.streams == pytest.approx({"env": 0.75, "action": 0.25, "parked": 0.0})


def test_a_window_without_an_update_is_not_full() -> None:
    times = {"waited_s": 1.0, "optimizer_s": 1.0, "model_s": 1.0, "env_s": 1.0, "action_s": 1.0}

    assert not is_full(page(3, **times), page(3, **times))
    assert is_full(page(3, **times), page(4, **times))


def test_all_values_of_the_learners_settings_are_measured() -> None:
    found = list(variants(Settings()))

    assert {variant.precision for variant in found} == {"fp32", "bf16"}
    assert {variant.graphs for variant in found} == {"on", "off"}
    assert len(found) == len(set(found)) == 2 * 3 * 2 * 2


def test_a_measurement_that_was_cut_off_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rented machine may be gone before the last learner has been measured."""
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr("benchmarks.gpu.__main__.draw_shares", lambda *arguments: None)
    measured: list[str] = []

    def measure(variant: Variant, *settings: object) -> tuple[Row, Shares]:
        if variant.network == "deep" and not measured.count("null, deep, fp32"):
            measured.append(str(variant))
            raise KeyboardInterrupt
        measured.append(str(variant))
        numbers = {field.name: 1.0 for field in dataclasses.fields(Row)} | dataclasses.asdict(variant)
        return Row(**numbers), Shares(variant=str(variant), learner={}, inference={}, streams={})

    monkeypatch.setattr("benchmarks.gpu.__main__.measure", measure)
    settings = Settings(
        loads=("null",), networks=("shallow", "deep"), precisions=("fp32",), compiles=("off",), graphs=("off",)
    )
    with pytest.raises(KeyboardInterrupt):
        measure_all(settings, 0.0)
    path = measure_all(settings, 0.0)

    assert measured == ["null, shallow, fp32", "null, deep, fp32", "null, deep, fp32"]
    shares = json.loads(path.read_text())["results"]["shares"]
    assert [each["variant"] for each in shares] == ["null, shallow, fp32", "null, deep, fp32"]
    measure_all(dataclasses.replace(settings, seconds=2.0), 0.0)
    assert len(measured) == 5  # other settings are another measurement


def test_a_learner_that_does_not_train_is_named_and_the_others_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr("benchmarks.gpu.__main__.draw_shares", lambda *arguments: None)

    def measure(variant: Variant, *settings: object) -> tuple[Row, Shares]:
        if variant.network == "shallow":
            raise RuntimeError("the learner does not train")
        numbers = {field.name: 1.0 for field in dataclasses.fields(Row)} | dataclasses.asdict(variant)
        return Row(**numbers), Shares(variant=str(variant), learner={}, inference={}, streams={})

    monkeypatch.setattr("benchmarks.gpu.__main__.measure", measure)
    with pytest.raises(SystemExit, match=r"not measured: null, shallow, fp32$"):
        measure_all(Settings(loads=("null",), precisions=("fp32",), compiles=("off",), graphs=("off",)), 0.0)

    (path,) = tmp_path.glob("gpu-*.json")
    shares = json.loads(path.read_text())["results"]["shares"]
    assert shares and all("shallow" not in each["variant"] for each in shares)


def test_a_training_of_pong_that_is_cut_off_leaves_its_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)

    class CutOffError(Exception):
        pass

    def cut_off(*arguments: object) -> None:
        raise CutOffError

    monkeypatch.setattr("benchmarks.gpu.pong.wait_until", cut_off)  # the wait for the second sample
    with pytest.raises(CutOffError):
        main(["--tiny", "--pong"])

    (path,) = tmp_path.glob("gpu-pong-tiny-*.json")
    assert json.loads(path.read_text())["results"]["points"]


@pytest.mark.parametrize("settings", [{"pong_seconds": 481.0}, {"pong_seconds": 0.0}, {"envs": 3, "processes": 4}])
def test_settings_that_cannot_be_measured_are_named(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(settings))} = "):
        Settings(**settings)  # type: ignore[arg-type]


def test_a_step_is_sent_to_act_on_it_and_to_train_on_it() -> None:
    frame = 84 * 84
    sent = transfers("shallow", unroll_length=20, batch_size=2)

    assert frame < sent.inference_bytes_per_step < frame + 64
    frames = frame * (20 + 4) / 20  # those of 21 rows, and three before them
    assert frames < sent.training_bytes_per_step < frames + 160
    with_lstm = transfers("lstm", unroll_length=20, batch_size=2)
    assert with_lstm.training_bytes_per_step > sent.training_bytes_per_step


def test_the_driver_says_how_busy_the_gpu_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho '87, 1234'\n")
    program.chmod(0o755)
    monkeypatch.setattr(busy, "QUERY", (str(program),))

    with busy.GpuWatch() as watch:
        pass
    assert watch.use == busy.GpuUse(87.0, 1234.0)


def test_without_a_driver_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(busy, "QUERY", (str(tmp_path / "nothing"),))

    with busy.GpuWatch() as watch:
        pass
    assert watch.use is None


def test_the_curve_keeps_its_end() -> None:
    points = [Point(float(second), 100 * second, None) for second in range(13)]

    assert [point.seconds for point in thinned(points)] == [0.0, 5.0, 10.0, 12.0]
    assert summary(points, None, wanted=20.0).steps_per_s == 100.0
    assert summary(points, None, wanted=20.0).minutes_to_return is None
    learned = [*points, Point(30.0, 2000, 19.9), Point(36.0, 2400, 20.0), Point(42.0, 2800, 20.5)]
    assert summary(learned, None, wanted=20.0).minutes_to_return == 0.6
    assert point_of({"elapsed_s": None, "step": 5, "mean_episode_return": -21.0}) == Point(0.0, 5, -21.0)
