"""The user chooses the device, and inference computes the same numbers on each."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from kubebeast_learner.actors.core_states import CoreStateTable
from kubebeast_learner.actors.inference import InferenceWorker
from kubebeast_learner.actors.weights import WeightPublisher
from kubebeast_learner.algorithm.rollout import to_host
from kubebeast_learner.config import ConfigError
from kubebeast_learner.ranks.devices import choose_device, choose_inference_devices
from kubebeast_learner.ranks.group import open_group
from kubebeast_learner.ranks.place import ALONE, Place
from tests.unit.learner.actors.test_inference import A, FakePool
from tests.unit.learner.algorithm.learning_data import make_mlp, random_rollout

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
needs_two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are no two GPUs")


@pytest.mark.parametrize("name", ["cpu", "meta"])
def test_the_device_is_the_one_that_is_named(name: str) -> None:
    assert choose_device(name) == torch.device(name)


def test_auto_takes_cuda_where_there_is_one() -> None:
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("name", ["cuda:99", "gpu"])
def test_a_device_that_is_not_here_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=f"device = '{name}'"):
        choose_device(name)


@pytest.mark.parametrize(
    ("names", "own"),
    [
        ((), [[], []]),
        (("meta",), [["meta"], ["meta"]]),
        (("cpu:0", "cpu:1", "cpu:2"), [["cpu:0", "cpu:2"], ["cpu:1"]]),
    ],
)
def test_learners_of_a_machine_deal_out_the_devices_of_inference(names: tuple[str, ...], own: list[list[str]]) -> None:
    places = [Place(rank=2 + index, num_ranks=4, local_rank=index, num_local_ranks=2) for index in range(2)]

    assert [[str(device) for device in choose_inference_devices(names, place)] for place in places] == own


def test_cuda_is_the_gpu_of_the_local_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [Place(rank=2 + index, num_ranks=4, local_rank=index, num_local_ranks=2) for index in range(2)]
    current = torch.device("cuda:5")

    def tensor_on(device: torch.device) -> SimpleNamespace:
        return SimpleNamespace(device=current if str(device) == "cuda" else device)

    monkeypatch.setattr(torch, "empty", lambda size, device: tensor_on(device))

    assert [choose_device("cuda", place) for place in places] == [torch.device("cuda:0"), torch.device("cuda:1")]
    assert choose_device("cuda") == current  # the equal of the device that tensors name
    assert choose_device("cuda:1", places[0]) == torch.device("cuda:1")
    for index, place in enumerate(places):
        assert choose_inference_devices(["cuda"], place) == [torch.device(f"cuda:{index}")]
        assert choose_inference_devices(["cuda:2", "cuda:3"], place) == [torch.device(f"cuda:{2 + index}")]


def test_a_device_of_inference_that_is_not_here_is_named() -> None:
    with pytest.raises(ConfigError, match="inference_device = 'cuda:99'"):
        choose_inference_devices(["cpu", "cuda:99"])


@pytest.mark.parametrize(("name", "chosen"), [("cuda:1", ["cuda:1"]), ("cuda", []), ("cpu", [])])
def test_a_learner_that_is_alone_takes_nothing_of_another_gpu(
    name: str, chosen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    current: list[str] = []
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: current.append(str(device)))

    with open_group(ALONE, torch.device(name), timeout_s=1.0):
        assert current == chosen


def test_what_is_on_the_cpu_already_is_not_copied() -> None:
    tensors = [torch.arange(3), torch.ones(2, 2)]

    assert [copy.data_ptr() for copy in to_host(*tensors)] == [tensor.data_ptr() for tensor in tensors]


def test_a_part_of_a_larger_tensor_comes_as_an_array_that_c_reads() -> None:
    whole = torch.arange(6.0).reshape(2, 3)
    (part,) = to_host(whole[:, :2])

    assert part.is_contiguous() and part.tolist() == [[0.0, 1.0], [3.0, 4.0]]


@needs_cuda
def test_a_batch_goes_to_the_gpu_and_stays_there() -> None:
    rollout = random_rollout()
    there = rollout.to("cuda")

    assert there.rewards.is_cuda and there.to("cuda").rewards.data_ptr() == there.rewards.data_ptr()
    for mine, back in zip(rollout.observation, to_host(*there.observation), strict=True):
        assert torch.equal(mine, back)


SETTINGS = [
    # Device of the learner's weights, and devices of inference. PyTorch distinguishes cpu from cpu:0.
    ("cpu", ["cpu"]),
    ("cpu", ["cpu", "cpu:0"]),
    pytest.param("cuda", ["cuda"], marks=needs_cuda),
    pytest.param("cuda", ["cpu"], marks=needs_cuda),
    pytest.param("cpu", ["cpu", "cuda"], marks=needs_cuda),
    pytest.param("cuda:1", ["cuda:0"], marks=needs_two_gpus),
    pytest.param("cuda:1", ["cuda:0", "cuda:1"], marks=needs_two_gpus),
]


@pytest.mark.parametrize("use_lstm", [False, True])
@pytest.mark.parametrize(("learner", "devices"), SETTINGS)
def test_inference_gives_the_models_numbers_on_every_device(learner: str, devices: list[str], use_lstm: bool) -> None:
    pools, model = [FakePool() for _ in devices], make_mlp(A, use_lstm=use_lstm)
    source = copy.deepcopy(model).to(learner)
    home = devices[0] if len(devices) == 1 else "cpu"
    core_states = CoreStateTable(source, max_envs=4, device=home) if use_lstm else None
    weights = [WeightPublisher(source, device=device, precision="fp32", version=3) for device in devices]
    workers = [
        InferenceWorker(pool, published, core_states=core_states, device=device)
        for pool, published, device in zip(pools, weights, devices, strict=True)
    ]
    for worker in workers:
        worker.start()
    slots = [3, 1]
    core_state = model.initial_state(len(slots))
    for step in range(6):
        if step == 3:  # new weights, on all devices
            for mine, trained in zip(model.parameters(), source.parameters(), strict=True):
                torch.nn.init.normal_(mine)
                trained.data.copy_(mine)
            for published in weights:
                published.publish(4)
        pool = pools[step % len(pools)]  # each device serves a slot in turn
        batch, reply = pool.ask(slots, is_first=[step == 0] * 2, unroll_start=[True] * 2)
        if use_lstm:
            assert reply.core_state is not None
            np.testing.assert_allclose(reply.core_state, model.pack_core_state(core_state), rtol=1e-4, atol=1e-5)
        else:
            assert reply.core_state is None
        with torch.no_grad():
            output, core_state = model(batch.model_inputs(), core_state)
        np.testing.assert_allclose(reply.policy_logits, output.policy_logits[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(reply.baseline, output.baseline[0], rtol=1e-4, atol=1e-5)
        assert reply.policy_version == (3 if step < 3 else 4)
    for worker in workers:
        worker.stop()
