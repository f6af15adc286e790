"""Settings come from several sources in a fixed order, and unusable ones are refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest
import tyro
import yaml

from kubebeast_common.cli.parsing import StartLog, parse
from kubebeast_common.cli.settings import as_flags, as_settings, section_from_settings, setting_types
from kubebeast_common.cli.sources import LayeredFlags
from kubebeast_learner.config import (
    ConfigError,
    LearnerConfig,
    LossConfig,
    ModelConfig,
    MonoConfig,
    OptimizerConfig,
    PoolConfig,
    RanksConfig,
    RolloutConfig,
    RunConfig,
    TrainConfig,
)
from kubebeast_learner.config.sources import layer_flags


def write_yaml(folder: Path, text: str) -> str:
    path = folder / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_sources_come_in_the_order_recipe_file_environment_flags(tmp_path: Path) -> None:
    path = write_yaml(tmp_path, "unroll_length: 30\nbatch_size: 31\nlearning_rate: 0.1\n")
    environ = {"KUBEBEAST_UNROLL_LENGTH": "40", "KUBEBEAST_BATCH_SIZE": "41"}
    user = ["--config", path, "--recipe", "CartPole-v1", "--unroll-length=50"]
    flags = layer_flags(TrainConfig, user, environ).flags
    positions = [flags.index(flag) for flag in ("--unroll-length=20", "--unroll-length=30", "--unroll-length=40")]
    assert positions == sorted(positions)
    assert flags[-len(user) :] == user
    assert flags.index("--batch-size=41") > flags.index("--batch-size=31")


def recipe_of(layered: LayeredFlags) -> str:
    """Returns the name of the recipe among the sources; "" if there is none."""
    names = (note.partition(":")[0].removeprefix("recipe ") for note in layered.notes if note.startswith("recipe "))
    return next(names, "")


@pytest.mark.parametrize("own", [["--model=nets:Net"], ["--loss=losses:loss"], []])
def test_the_recipe_of_atari_normalizes_no_values_beside_a_model_or_a_loss_of_ones_own(own: list[str]) -> None:
    layered = layer_flags(MonoConfig, ["--env=PongNoFrameskip-v4", *own], {})

    (note,) = [note for note in layered.notes if note.startswith("recipe atari")]
    assert ("normalise_values" in note) == (not own) and "normalise_images" in note


def test_recipe_follows_the_environment_id_of_any_source(tmp_path: Path) -> None:
    path = write_yaml(tmp_path, "env: ALE/Breakout-v5\n")
    by_file = layer_flags(TrainConfig, ["--config", path], {})
    by_variable = layer_flags(TrainConfig, [], {"KUBEBEAST_ENV": "ALE/Breakout-v5"})
    by_default = layer_flags(TrainConfig, [], {})
    assert recipe_of(by_file) == recipe_of(by_variable) == recipe_of(by_default) == "atari"
    assert recipe_of(layer_flags(TrainConfig, [], {"KUBEBEAST_ENV": "CartPole-v1"})) == ""


def test_a_learner_leaves_its_recipe_to_the_environment_unless_one_is_named() -> None:
    config = parse(StartLog("test", "text"), "test", LearnerConfig, layer_flags(LearnerConfig, [], {}), True)
    assert config.recipe.is_open
    layered = layer_flags(LearnerConfig, ["--recipe", "CartPole-v1"], {})
    assert "--unroll-length=20" in layered.flags
    assert not any(flag.startswith("--num-actors") for flag in layered.flags)


def test_the_kind_of_an_environment_may_decide_on_what_no_source_names(tmp_path: Path) -> None:
    path = write_yaml(tmp_path, "unroll_length: 30\n")
    words = ["--env=CartPole-v1", "--config", path, "--no-normalise-advantages"]
    layered = layer_flags(MonoConfig, words, {"KUBEBEAST_BATCH_SIZE": "41"})

    config = parse(StartLog("test", "text"), "test", MonoConfig, layered, True)

    assert config.recipe.is_open and str(config.recipe) == "kind"
    assert {"unroll_length", "batch_size", "normalise_advantages"} <= config.recipe.named
    assert "learning_rate" not in config.recipe.named and "recipe" not in as_settings(config)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "atari"),
        (["--recipe=grid"], "grid"),
        (["--recipe=none"], "none"),
        (["--recipe=torchbeast", "--env=CartPole-v1"], "torchbeast"),
    ],
)
def test_every_other_choice_leaves_nothing_open(words: list[str], expected: str) -> None:
    config = parse(StartLog("test", "text"), "test", MonoConfig, layer_flags(MonoConfig, words, {}), True)

    assert not config.recipe.is_open and str(config.recipe) == expected


def test_unknown_setting_in_a_file_is_named_with_the_nearest_known_one(tmp_path: Path) -> None:
    path = write_yaml(tmp_path, "unroll_lenght: 20\n")
    with pytest.raises(ConfigError, match=r"unroll_lenght = '20'.*did you mean unroll_length\?"):
        layer_flags(TrainConfig, ["--config", path], {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n- b\n", "name: value"),
        ("a: [", "not YAML"),
        ("use_lstm: maybe\n", "use_lstm = 'maybe'.*true or false"),
        ("hidden_sizes: 64\n", "hidden_sizes = '64'.*list"),
        ("unroll_length: [20]\n", "unroll_length = .*single value"),
    ],
)
def test_unusable_file_is_refused_with_the_reason(tmp_path: Path, text: str, message: str) -> None:
    path = write_yaml(tmp_path, text)
    with pytest.raises(ConfigError, match=message):
        layer_flags(TrainConfig, ["--config", path], {})


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config = .*nowhere\.yaml.*No such file"):
        layer_flags(TrainConfig, ["--config", str(tmp_path / "nowhere.yaml")], {})


def test_scalars_of_a_file_are_taken_as_written(tmp_path: Path) -> None:
    path = write_yaml(tmp_path, "xpid: 007\nuse_lstm: true\nhidden_sizes: [32, 16]\n")
    flags = layer_flags(TrainConfig, ["--config", path, "--recipe", "none"], {}).flags
    assert flags[:5] == ["--xpid=007", "--use-lstm", "--hidden-sizes", "32", "16"]


def test_a_mapping_of_a_file_is_a_json_object_with_the_types_of_yaml(tmp_path: Path) -> None:
    options = "{size: 64, name: '64', rate: 1e-5, deep: {on: true, off: no}, list: [1, ~]}"
    path = write_yaml(tmp_path, f"model: my_net:MyNet\nmodel_options: {options}\n")
    flag = layer_flags(TrainConfig, ["--config", path, "--recipe", "none"], {}).flags[1]
    expected = {"size": 64, "name": "64", "rate": 1e-5, "deep": {"on": True, "off": "no"}, "list": [1, None]}
    assert json.loads(flag.removeprefix("--model-options=")) == expected


def test_settings_of_single_leaves_come_from_any_source(tmp_path: Path) -> None:
    path = write_yaml(tmp_path, "image_layout: [a.b=hwc, c=flat]\nencoder_options: {d: {size: 5}}\n")
    flags = layer_flags(
        TrainConfig, ["--config", path, "--recipe", "none"], {"KUBEBEAST_ENCODER": "d=m:C"}
    ).from_sources
    model = tyro.cli(ModelConfig, args=flags)
    assert (model.image_layouts, model.encoders) == ({"a.b": "hwc", "c": "flat"}, {"d": "m:C"})
    assert section_from_settings(ModelConfig, yaml.safe_load(yaml.safe_dump(as_settings(model)))) == model


def test_variables_that_kubernetes_sets_are_passed_over() -> None:
    environ = {"KUBEBEAST_LEARNER_SERVICE_HOST": "10.0.0.1", "KUBEBEAST_LEARNER_PORT": "tcp://10.0.0.1:4431"}
    assert layer_flags(TrainConfig, ["--recipe", "none"], environ).notes == []


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        (RolloutConfig, {"unroll_length": 0}, "unroll_length = 0: must be at least 1"),
        (PoolConfig, {"min_inference_rows": 300}, "max_inference_rows = 256: .*min_inference_rows"),
        (PoolConfig, {"max_policy_lag": -1}, "max_policy_lag = -1: must not be negative"),
        (PoolConfig, {"http_address": ":9090"}, "http_address = ':9090': must be \"host:port\""),
        (PoolConfig, {"http_address": "0.0.0.0:9090-9091"}, "http_address = .*must be"),
        (PoolConfig, {"http_address": "host:65536"}, "http_address = .*must be"),
        (PoolConfig, {"dial": "a:1,"}, "dial = '': must be"),
        (PoolConfig, {"dial": "a"}, 'dial = \'a\': must be "host:port" or "host:first-last"'),
        (PoolConfig, {"dial": "a:1, b:9-8"}, "dial = 'b:9-8': must be"),
        (PoolConfig, {"dial": "a:0"}, "dial = 'a:0': must be"),
        (PoolConfig, {"dial": "::1:4431"}, "dial = '::1:4431': must be"),
        (PoolConfig, {"tls_cert": Path("c")}, "tls_cert = 'c': needs tls_key too"),
        (PoolConfig, {"tls_key": Path("k")}, "tls_key = 'k': needs tls_cert too"),
        (PoolConfig, {"tls_ca": Path("a")}, "tls_ca = 'a': needs tls_cert and tls_key too, to listen"),
        (PoolConfig, {"tls_ca": Path("a"), "dial": "a:1", "address": "[::]:1"}, "tls_ca = 'a': needs tls_cert"),
        (PoolConfig, {"tls_cert": Path("c"), "tls_key": Path("k"), "dial": "a:1"}, "tls_cert = 'c': needs tls_ca too"),
        (PoolConfig, {"inference_device": "cuda:0,"}, "inference_device = 'cuda:0,': must be auto, or devices"),
        (PoolConfig, {"inference_device": "cpu,auto"}, "inference_device = 'cpu,auto': must be auto, or devices"),
        (PoolConfig, {"inference_device": "cpu, cpu"}, "inference_device = 'cpu, cpu': names a device twice"),
        (RanksConfig, {"share_timeout_s": 300.0}, "share_timeout_s = 300.0: must be less than rank_timeout_s"),
        (
            RunConfig,
            {"savedir": "ftp://host/runs"},
            "savedir = 'ftp://host/runs': there is no such kind of store",
        ),
        (RunConfig, {"savedir": "s3:///runs"}, "savedir = 's3:///runs': it names no bucket"),
        (RunConfig, {"stop_status": 256}, "stop_status = 256: must be from 0 to 255"),
        (PoolConfig, {"linger_s": 0.0}, "linger_s = 0.0: must be positive"),
        (RunConfig, {"xpid": "a/b"}, "xpid = 'a/b': must be a plain name"),
        (RunConfig, {"keep_best": -1}, "keep_best = -1: must not be negative"),
        (RunConfig, {"best_evaluator": "a/b"}, "best_evaluator = 'a/b': must have 1 to 63 letters, digits"),
        (RunConfig, {"xpid": "ü" * 127}, "xpid = .*: must be printable and of at most 253 bytes"),
        (RunConfig, {"xpid": "a\nb"}, "xpid = .*: must be printable"),
        (ModelConfig, {"hidden_sizes": ()}, "hidden_sizes = "),
        (ModelConfig, {"encoder": ("eye",)}, "encoder = 'eye': must be LEAF=module:Class; the only leaf is called"),
        (ModelConfig, {"encoder": ("=m:C",)}, "encoder = '=m:C': must be LEAF=module:Class"),
        (ModelConfig, {"encoder": ("a=m:C", "a=m:D")}, "encoder = 'a=m:D': there is another one for a"),
        (ModelConfig, {"encoder": ("a=m:C",), "model": "m:Net"}, "encoder = .*model = 'm:Net' takes all leaves itself"),
        (ModelConfig, {"encoder_options": '{"a": {}}'}, "encoder_options = 'a': encoder names no such leaf"),
        (ModelConfig, {"encoder": ("a=m:C",), "encoder_options": '{"a": 3}'}, "encoder_options = 3: must be a JSON"),
        (ModelConfig, {"image_layout": ("a=hc",)}, "image_layout = 'a=hc': must be LEAF=AXES, e.g. hwc"),
        (ModelConfig, {"image_layout": ("a=hhw",)}, "image_layout = 'a=hhw': must be LEAF=AXES"),
        (ModelConfig, {"image_layout": ("a=hw",), "model": "mlp"}, "image_layout = .*model = 'mlp' flattens all"),
        (ModelConfig, {"model_options": '{"size": 3}'}, "model_options = .*: is for a model of your own, module:Name"),
        (ModelConfig, {"model": "m:Net", "model_options": "[]"}, "model_options = .*: must be a JSON object"),
        (LossConfig, {"loss_options": '{"size": 3}'}, "loss_options = .*: is for a loss of your own"),
        (LossConfig, {"loss": "m:f", "loss_options": "{"}, "loss_options = '{': is no JSON"),
        (LossConfig, {"loss": "m:f", "loss_options": '{"a": 1, "a": 2}'}, "is no JSON: 'a' is given twice"),
        (OptimizerConfig, {"optimizer_options": '{"fused": true}'}, "optimizer_options = .*torch.optim:RMSprop"),
        (OptimizerConfig, {"optimizer": "sgd"}, "optimizer = 'sgd': must be rmsprop, adam or module:Class"),
        (OptimizerConfig, {"momentum": -0.5}, "momentum = -0.5: must not be negative"),
        (LossConfig, {"vtrace_lambda": 1.5}, r"vtrace_lambda = 1.5: must lie in \[0, 1\]"),
        (LossConfig, {"clip_c_threshold": -0.5}, "clip_c_threshold = -0.5: must not be negative; None"),
    ],
)
def test_validation_names_field_value_and_reason(section: type, values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        section(**values)


@pytest.mark.parametrize(
    ("settings", "listens_on", "dials"),
    [
        ({}, "127.0.0.1:4431", ()),
        ({"address": ""}, "", ()),
        ({"dial": "fleet:7000-7015"}, "", ("fleet:7000-7015",)),
        ({"dial": "a:1, [::1]:2", "tls_ca": Path("ca")}, "", ("a:1", "[::1]:2")),
        ({"dial": "a:1", "address": "0.0.0.0:4431"}, "0.0.0.0:4431", ("a:1",)),
    ],
)
def test_a_learner_that_dials_listens_only_where_it_is_told_to(
    settings: dict[str, Any], listens_on: str, dials: tuple[str, ...]
) -> None:
    pool = PoolConfig(**settings)
    assert (pool.listen_address, pool.dial_targets) == (listens_on, dials)


def test_paths_of_secrets_come_from_any_source(tmp_path: Path) -> None:
    path = write_yaml(tmp_path, "tls_cert: c.pem\ntls_key: k.pem\ntls_ca: null\n")
    flags = layer_flags(LearnerConfig, ["--config", path], {"KUBEBEAST_TOKEN_FILE": "~/tokens"}).flags
    pool = tyro.cli(PoolConfig, args=flags[:-2])
    assert (pool.tls_cert, pool.tls_key, pool.tls_ca) == (Path("c.pem"), Path("k.pem"), None)
    assert as_settings(pool)["token_file"] == "~/tokens"


def test_setting_names_are_unique_over_all_sections() -> None:
    names = list(as_settings(TrainConfig()))
    assert len(names) == len(set(names)) == len(setting_types(TrainConfig))


@pytest.mark.parametrize("null", ["null", "~", "None", ""])
def test_a_threshold_is_turned_off_by_null_in_a_file_and_none_in_a_flag(null: str, tmp_path: Path) -> None:
    path = write_yaml(tmp_path, f"clip_rho_threshold: {null}\n")
    flags = layer_flags(LearnerConfig, ["--config", path], {"KUBEBEAST_CLIP_C_THRESHOLD": null}).flags
    assert flags[:2] == ["--clip-rho-threshold=None", "--clip-c-threshold=None"]
    config = tyro.cli(LossConfig, args=[*flags[:2], "--clip-pg-rho-threshold", "2.5"])
    assert (config.clip_rho_threshold, config.clip_c_threshold, config.clip_pg_rho_threshold) == (None, None, 2.5)


def test_a_configuration_is_the_same_again_from_its_flags() -> None:
    config = TrainConfig(
        run=RunConfig(savedir=str(Path("runs")), disable_checkpoint=True),
        loss=LossConfig(clip_rho_threshold=None),
        model=ModelConfig(hidden_sizes=(8, 16)),
        pool=PoolConfig(address="", linger=True),
    )

    assert tyro.cli(TrainConfig, args=as_flags(config), config=(tyro.conf.OmitArgPrefixes,)) == config


def test_unclipped_thresholds_survive_the_files_of_a_run() -> None:
    config = TrainConfig(loss=LossConfig(clip_rho_threshold=None, clip_c_threshold=2.0))
    restored = yaml.safe_load(yaml.safe_dump(as_settings(config)))
    assert section_from_settings(LossConfig, restored) == config.loss


def test_checkpoints_without_a_setting_get_its_default() -> None:
    settings = {"model": "shallow", "use_lstm": True, "hidden_sizes": [64, 64], "initialisation": "pytorch"}
    expected = ModelConfig(model="shallow", use_lstm=True, reward_input="auto", last_action_input="auto")
    assert section_from_settings(ModelConfig, settings) == expected


def test_saved_settings_are_plain_and_rebuild_a_section() -> None:
    settings = as_settings(TrainConfig(model=ModelConfig(model="mlp", hidden_sizes=(7, 5))))
    restored = yaml.safe_load(yaml.safe_dump(settings))
    assert restored == settings
    assert section_from_settings(ModelConfig, restored) == ModelConfig(model="mlp", hidden_sizes=(7, 5))
