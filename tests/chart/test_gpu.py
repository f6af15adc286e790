"""A learner on a GPU gets one, and an image that can use it, and ends with an error if it finds none."""

from typing import Any

import pytest
import yaml

from tests.chart.chart import APP_VERSION, REGISTRY, Manifests, container, environment, render, render_error


def with_gpu(**learner: Any) -> Manifests:
    return render({"learner": {"gpu": {"count": 1}, **learner}})


def image(manifests: Manifests) -> str:
    return str(container(manifests.get("StatefulSet")["spec"]["template"])["image"])


def device(manifests: Manifests) -> str | None:
    settings: dict[str, str] = yaml.safe_load(manifests.get("ConfigMap", "demo-learner")["data"]["learner.yaml"])
    return settings.get("device")


def test_a_gpu_should_be_added_to_the_limits() -> None:
    manifests = with_gpu(gpu={"count": 1, "runtimeClassName": "nvidia"}, resources={"limits": {"memory": "8Gi"}})
    template = manifests.get("StatefulSet")["spec"]["template"]

    assert container(template)["resources"]["limits"] == {"memory": "8Gi", "nvidia.com/gpu": "1"}
    assert template["spec"]["runtimeClassName"] == "nvidia"
    assert "nvidia.com/gpu" not in str(render().get("StatefulSet"))


def test_a_gpu_should_come_with_the_image_that_can_use_it() -> None:
    assert image(with_gpu()) == f"{REGISTRY}/kubebeast/learner:{APP_VERSION}-cuda"
    assert image(with_gpu(image={"tag": "mine"})) == f"{REGISTRY}/kubebeast/learner:mine"
    assert image(render()) == f"{REGISTRY}/kubebeast/learner:{APP_VERSION}"


def test_a_learner_that_shall_have_a_gpu_should_not_fall_back_to_the_cpu() -> None:
    assert device(with_gpu()) == "cuda"
    assert device(with_gpu(config={"device": "cuda:0"})) == "cuda:0"
    assert device(render()) is None


def test_compiled_kernels_should_survive_a_restart() -> None:
    template = with_gpu().get("StatefulSet")["spec"]["template"]
    mounts = {mount["mountPath"]: mount["name"] for mount in container(template)["volumeMounts"]}

    assert environment(template)["TORCHINDUCTOR_CACHE_DIR"].startswith("/runs/") and "/runs" in mounts
    stored = with_gpu(storage={"url": "s3://bucket/runs"}).get("StatefulSet")["spec"]["template"]
    assert environment(stored)["TORCHINDUCTOR_CACHE_DIR"].startswith("/tmp/")
    own = with_gpu(extraEnv=[{"name": "TORCHINDUCTOR_CACHE_DIR", "value": "/tmp/mine"}]).get("StatefulSet")
    assert environment(own["spec"]["template"])["TORCHINDUCTOR_CACHE_DIR"] == "/tmp/mine"
    assert "TORCHINDUCTOR" not in str(render().get("StatefulSet"))


@pytest.mark.parametrize("name", ["cpu", "auto"])
def test_a_gpu_that_would_not_be_used_should_be_refused(name: str) -> None:
    error = render_error({"learner": {"gpu": {"count": 1}, "config": {"device": name}}})

    assert f'learner.config.device is "{name}", but learner.gpu.count is 1' in error
