"""Inference threads get the newest version of the weights, never a mix, and without waiting."""

import threading

import pytest
import torch

from kubebeast_learner.actors.weights import RecentWeights, WeightPublisher
from kubebeast_learner.config import ModelConfig
from kubebeast_learner.models import Model, make_model
from kubebeast_learner.models.actor_critic import ActorCritic
from tests.unit.learner.algorithm.learning_data import FRAMES, discrete, make_mlp


@torch.no_grad()
def fill(model: Model, value: float) -> None:
    for parameter in model.parameters():
        parameter.fill_(value)


def values(model: Model) -> set[float]:
    return {value for parameter in model.parameters() for value in parameter.flatten().tolist()}


def test_published_weights_are_what_readers_get() -> None:
    source = make_mlp()
    publisher = WeightPublisher(source, version=7)
    with publisher.acquire() as (model, version):
        assert version == 7
        torch.testing.assert_close(model.state_dict(), source.state_dict(), rtol=0, atol=0)
    fill(source, 0.5)
    publisher.publish(8)
    with publisher.acquire() as (model, version):
        assert version == 8
        assert values(model) == {0.5}


def test_unpublished_changes_are_invisible() -> None:
    source = make_mlp()
    fill(source, 1.0)
    publisher = WeightPublisher(source)
    fill(source, 2.0)
    with publisher.acquire() as (model, _):
        assert values(model) == {1.0}


def test_reader_keeps_its_weights_while_others_are_published() -> None:
    source = make_mlp()
    fill(source, 0.0)
    publisher = WeightPublisher(source)
    with publisher.acquire() as (model, version):
        for new in range(1, 6):
            fill(source, new)
            publisher.publish(new)
        assert version == 0
        assert values(model) == {0.0}
    assert publisher.num_replicas == 3


def test_without_readers_two_replicas_are_enough() -> None:
    publisher = WeightPublisher(make_mlp())
    for version in range(1, 10):
        publisher.publish(version)
    assert publisher.num_replicas == 2


def test_replica_is_released_when_its_reader_fails() -> None:
    publisher = WeightPublisher(make_mlp())
    for version in range(1, 10):
        try:
            with publisher.acquire():
                raise KeyError
        except KeyError:
            publisher.publish(version)
    assert publisher.num_replicas == 2


def test_only_the_torso_is_kept_in_bf16() -> None:
    source = make_model([FRAMES], [discrete(3)], ModelConfig(model="shallow", use_lstm=True))
    publisher = WeightPublisher(source, precision="bf16")
    with publisher.acquire() as (model, _):
        assert isinstance(model, ActorCritic)
        assert {p.dtype for p in model.torso.parameters()} == {torch.bfloat16}
        assert {p.dtype for room in (model.core, model.policy, model.baseline) for p in room.parameters()} == {
            torch.float32
        }
        assert not any(p.requires_grad for p in model.parameters())
    assert {p.dtype for p in source.parameters()} == {torch.float32}


def test_concurrent_readers_never_see_a_mix() -> None:
    source = make_mlp()
    fill(source, 0.0)
    publisher = WeightPublisher(source)
    num_readers, done, mixed, seen = 3, threading.Event(), [], set()

    def read() -> None:
        newest = 0
        while not done.is_set():
            with publisher.acquire() as (model, version):
                before = values(model)
                after = values(model)
            if before != {float(version)} or after != before or version < newest:
                mixed.append((version, before, after))
            newest = version
            seen.add(version)

    readers = [threading.Thread(target=read) for _ in range(num_readers)]
    for reader in readers:
        reader.start()
    version = 0
    while version < 300 or len(seen) < 5:
        version += 1
        fill(source, version)
        publisher.publish(version)
    done.set()
    for reader in readers:
        reader.join()
    assert mixed == []
    assert publisher.num_replicas <= num_readers + 2


def test_the_newest_versions_are_kept_each_as_it_was() -> None:
    source = make_mlp()
    fill(source, 3.0)
    recent = RecentWeights(source, 3, device=torch.device("cpu"), version=3)
    for version in (4, 5, 6):
        fill(source, float(version))
        recent.publish(version)
    assert [values(recent.at(version)) for version in (4, 5, 6)] == [{4.0}, {5.0}, {6.0}]
    with pytest.raises(AssertionError, match="version 6 is in place of 3"):
        recent.at(3)
