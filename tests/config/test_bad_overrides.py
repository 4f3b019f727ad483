"""Every bad override is refused in one line that names the place and the cure."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rolltop.config import compose, validate
from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rolltop.config import RunConfig

    Compose = Callable[..., RunConfig]

TOY = Path(__file__).parent / "sims" / "conf"
GRAMMAR = "key=value, +key=value or ~key"
SHIPPED = "there are: 1gpu, 2gpu, 8gpu_12rollouts, 8gpu_64rollouts, small"

# override: (words of the message, words of the hint)
BAD = {
    # the grammar
    "": ("override '' has no value", GRAMMAR),
    "rollouts": ("override 'rollouts' has no value", GRAMMAR),
    "=3": ("override '=3' has no key", GRAMMAR),
    "runtime.rollouts=[1,2": ("cannot be read", GRAMMAR),
    "run.name=a=b": ("run.name: must be made of letters, digits", ""),
    "run.name=${": ("override 'run.name=${' cannot be read", GRAMMAR),
    "run.dir='/x": ("cannot be read", GRAMMAR),
    "+defines.x=ü": ("override '+defines.x=ü' cannot be read", "\"key='ä = b'\" in a shell"),
    "run.dir=/x/\udcff": ("is not text in UTF-8", ""),
    "run.dir=/" + "x" * 5000: ("has 5,009 characters, at most 4,096 are read", "sim.file"),
    "+defines.x=" + "[" * 2000: ("cannot be read", GRAMMAR),
    "'a'=3": ("cannot be read", GRAMMAR),
    "runtime.rollouts=1,2": ("has several values", "a list is written runtime.rollouts=[1,2]"),
    "runtime.rollouts=range(1,4)": ("has several values", "a list is written"),
    "hydra.run.dir=x": ("settings of Hydra itself have no effect here", ""),
    "hydra/launcher=x": ("settings of Hydra itself have no effect here", ""),
    # groups
    "topology=9gpu": ("there is no topology=9gpu; did you mean topology=2gpu?", SHIPPED),
    "topology=8gpu_12rollout": ("did you mean topology=8gpu_12rollouts?", SHIPPED),
    "deploy=slurm": ("there is no deploy=slurm", "there are: local"),
    "site=moon": ("there is no site=moon", "there are: default"),
    "sim=toi": ("there is no sim=toi; did you mean sim=toy?", "there are: toy"),
    "~topology": ("topology is always one of its options", "write topology=NAME"),
    "+topology=small": ("topology is always one of its options", "write topology=NAME"),
    "topology=null": ("topology is always one of its options", "write topology=NAME"),
    "topology=[small,1gpu]": ("topology is always one of its options", "write topology=NAME"),
    "topology@x=small": ("groups cannot be moved", "write topology=..."),
    # unknown keys
    "runtime.rollout=3": ("unknown key runtime.rollout; did you mean runtime.rollouts?", ""),
    "runtme.nr_workers=3": ("unknown key runtme.nr_workers; did you mean runtime.nr_workers?", ""),
    "nr_workers=3": ("unknown key nr_workers; did you mean runtime.nr_workers?", ""),
    "topolgy=small": ("unknown key topolgy; did you mean topology?", ""),
    "foo=bar": ("unknown key foo", "at the top there are: defines, deploy, device, ports, run"),
    "a.b.c=1": ("unknown key a.b.c", "at the top there are"),
    "runtime.zzz=1": ("unknown key runtime.zzz", "in runtime there are: endpoints"),
    "++runtime.zzz=1": ("unknown key runtime.zzz", "in runtime there are: endpoints"),
    "+run.x=2": ("unknown key run.x", "in run there are: dir, name, seed, uuid"),
    "++services.brain.gpu=[0]": ("did you mean services.brain.gpus?", ""),
    "defines.new=1": ("unknown key defines.new", "+defines.new=... adds it"),
    "sim.services.brain.env.A=1": ("unknown key sim.services.brain.env.A", "=... adds it"),
    "~runtime.zzz": ("unknown key runtime.zzz", "in runtime there are"),
    "+runtime.rollouts=3": ("+runtime.rollouts: the key is there already", "runtime.rollouts=..."),
    "wizard.x=3": ("unknown key wizard.x", "only wizard.log_dir"),
    # not in this version
    "slurm.partition=x": ("slurm.partition is not supported by this version", ""),
    "runtime.stagger=3": ("runtime.stagger is not supported by this version", ""),
    "telemetry.file_sd_dir=/x": ("telemetry.file_sd_dir is not supported by this version", ""),
    "+slurm.partition=x": ("slurm is not supported by this version", ""),
    "device=emulated": ("device=emulated is not supported by this version", "device=none"),
    # values
    "runtime.nr_workers=four": ("runtime.nr_workers: must be a whole number, not 'four'", ""),
    "run.uuid=abc": ("run.uuid: 'abc' is no uuid", ""),
    "run.name=../x": ("run.name: must be made of letters, digits", ""),
    "run.dir=[a,b]": ("run.dir: must be text, not ['a', 'b']", "run.dir='...'"),
    "runtime=[1,2]": ("runtime: must be a section with keys, not a list", "runtime.KEY=..."),
    "sim.worker=[1]": ("sim.worker: must be a section with keys, not a list", ""),
    "runtime.rollouts=99999999999999999999999999": ("runtime.rollouts: must be at most 1,000", ""),
    "run.name=${run.name}": ("run.name: its ${...} leads back to itself", "${run.seed}"),
    "run.dir=/x/${run.dir}": ("run.dir: its ${...} leads back to itself", "${run.seed}"),
    "+defines.x=${defines.x}": ("defines.x: its ${...} leads back to itself", "${run.seed}"),
    "run.name=${a b}": ("run.name: its ${...} cannot be read", "${run.seed}"),
    "runtime=3": ("runtime: must be a section with keys, not 3", ""),
    "services=[1]": ("services", ""),
    "ports.range=30": ("ports.range: must be text", ""),
    "device=tpu": ("there is no device=tpu", "there are: auto, none, nvidia"),
    "device=nvidia": ("this node has no NVIDIA GPU", "device=none"),
    "run.name=${nope}": ("${nope} names no key of the configuration", ""),
    "+defines.x=${nope}": ("defines.x: ${nope} names no key of the configuration", ""),
    "run.name=${oc.env:ROLLTOP_NOT_SET}": ("variable 'ROLLTOP_NOT_SET' not found", ""),
    "services.brain.gpus=[]": ("services.brain.gpus: must be at least 1 long", "capacity of zero"),
    "~defines.toy_cache": ("defines.toy_cache is no path of this configuration", "adds it"),
    "+services.foo.gpus=[0]": ("runtime.endpoints.foo is missing", "+runtime.endpoints.foo.n_con"),
    "+runtime.endpoints.foo.n_concurrent_rollouts=1": (
        "services.foo is missing",
        "+services.foo.gpus=[0]",
    ),
    "~services.brain": ("services.brain is missing", "+services.brain.gpus=[0]"),
    "runtime.rollouts=": ("runtime.rollouts: must be a whole number, not ''", ""),
    "telemetry.worker_interval_s=inf": ("telemetry.worker_interval_s: must be a finite number", ""),
    # the simulator's file
    "sim.file=nowhere.yaml": ("nowhere.yaml cannot be read: No such file", ""),
    "sim.file=.": ("cannot be read: Is a directory", ""),
}

# the same for values, which need no composing to be refused; written as overrides, in YAML
BAD_VALUES = {
    "runtime.nr_workers=1.5": ("runtime.nr_workers: must be a whole number, not 1.5", ""),
    "runtime.nr_workers=true": ("runtime.nr_workers: must be a whole number, not true", ""),
    "runtime.nr_workers=null": ("runtime.nr_workers: must be a whole number, not null", ""),
    "runtime.rollouts=0": ("runtime.rollouts: must be at least 1, not 0", ""),
    "runtime.rollouts=-1": ("runtime.rollouts: must be at least 1, not -1", ""),
    "runtime.max_rollout_retries=-1": ("must be at least 0, not -1", ""),
    "runtime.steps_per_rollout=0": ("runtime.steps_per_rollout: must be at least 1, not 0", ""),
    "runtime.nr_workers=0": ("runtime.nr_workers: must be at least 1, not 0", ""),
    "run.seed=-1": ("run.seed: must be at least 0, not -1", ""),
    "runtime.rollouts=1000001": ("runtime.rollouts: must be at most 1,000,000, not 1000001", ""),
    "runtime.nr_workers=1025": ("runtime.nr_workers: must be at most 1,024, not 1025", ""),
    "runtime.max_rollout_retries=1001": ("must be at most 1,000, not 1001", ""),
    "runtime.steps_per_rollout=1000000001": ("must be at most 1,000,000,000, not", ""),
    "run.seed=9223372036854775808": ("run.seed: must be below 9,223,372,036,854,775,808", ""),
    "services.brain.gpus=[4096]": ("services.brain.gpus[0]: must be below 4,096, not 4096", ""),
    "services.brain.replicas_per_container=4097": ("must be at most 4,096, not 4097", ""),
    "services.brain.replicas_per_container=4096": (
        "in all, 4,096 of them of brain: must be at most 4,096",
        "a smaller services.brain.replicas_per_container",
    ),
    "runtime.endpoints.brain.n_concurrent_rollouts=100001": ("must be at most 100,000", ""),
    "sim.scenes.count=1000000001": ("sim.scenes.count: must be at most 1,000,000,000", ""),
    "run.seed=x": ("run.seed: must be a whole number, not 'x'", ""),
    "run.name='a b'": ("run.name: must be made of letters, digits", ""),
    "run.name=''": ("run.name: must be made of letters, digits", ""),
    "telemetry.worker_interval_s=0": ("telemetry.worker_interval_s: must be at least 0.001", ""),
    "telemetry.exporter_interval_s=0.0009": ("must be at least 0.001, not 0.0009", ""),
    "telemetry.rule_interval_s=0.0001": ("must be at least 0.001, not 0.0001", ""),
    "sim.worker.health.kind=tcp": ("sim.worker.health: kind=tcp needs a port", ""),
    "sim.worker.health.kind=http": ("sim.worker.health: kind=http needs a port", ""),
    "telemetry.enabled=maybe": ("telemetry.enabled: must be true or false, not 'maybe'", ""),
    "telemetry=false": ("telemetry: must be a section with keys, not false", ""),
    "sim.faults=3": ("sim.faults: must be a section with keys, not 3", ""),
    "ports.range=30-20": ("ports.range: '30-20' is no range of ports", ""),
    "ports.range=1-20": ("between 1024 and 65535", ""),
    "ports.range=2000-70000": ("between 1024 and 65535", ""),
    # capacity
    "services.brain.gpus=[-1]": ("services.brain.gpus[0]: must be at least 0, not -1", ""),
    "services.brain.gpus=[a]": ("services.brain.gpus[0]: must be a whole number, not 'a'", ""),
    "services.brain.gpus=4": ("services.brain.gpus: must be a list, [a,b], not 4", ""),
    "services.brain.replicas_per_container=0": ("must be at least 1, not 0", "capacity of zero"),
    "runtime.endpoints.brain.n_concurrent_rollouts=0": (
        "runtime.endpoints.brain.n_concurrent_rollouts: must be at least 1, not 0",
        "capacity of zero",
    ),
    "runtime.endpoints.brain.n_concurrent_rollouts=-4": ("must be at least 1, not -4", ""),
    "defines.toy_cache=0": ("defines.toy_cache: a cache size must be a whole number above 0", ""),
    "services.renderer.replicas_per_container=2": (
        "renderer of 'toy' does not support replicas",
        "services.renderer.gpus=[0,0]",
    ),
    # services
    # faults
    "sim.faults.brian.delay_ms=60": ("sim.faults.brian: the simulator 'toy' has no such", "brain"),
    "sim.faults.brain.delay=60": ("did you mean sim.faults.brain.delay_ms?", ""),
    "sim.faults.brain.fail_ratio=2": ("sim.faults.brain.fail_ratio: must be at most 1, not 2", ""),
    "sim.faults.brain.fail_ratio=-1": ("must be at least 0, not -1", ""),
    "sim.faults.brain.delay_ms=-1": ("must be at least 0, not -1", ""),
    "sim.faults.brain.crash_after=0": ("must be at least 1, not 0", ""),
}


@pytest.mark.parametrize("override", BAD)
def test_a_bad_override_is_refused(override: str, composed: Compose) -> None:
    message, hint = BAD[override]
    with pytest.raises(ConfigError) as caught:
        composed(override)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert "\n" not in caught.value.message
    assert caught.value.exit_status == 2
    assert caught.value.__cause__ is None


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """Return a whole configuration as plain data."""
    config = compose(["topology=small"], cwd=Path("/x"), count_gpus=lambda: 0, folders={"toy": TOY})
    data: dict[str, Any] = yaml.safe_load(config.redacted_yaml())
    return data


@pytest.mark.parametrize("override", BAD_VALUES)
def test_a_bad_value_is_refused(override: str, plain: dict[str, Any]) -> None:
    data = copy.deepcopy(plain)
    path, _, value = override.partition("=")
    *above, leaf = path.split(".")
    section = data
    for name in above:
        section = section.setdefault(name, {})
    section[leaf] = yaml.safe_load(value)
    message, hint = BAD_VALUES[override]
    with pytest.raises(ConfigError) as caught:
        validate(data)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert "\n" not in caught.value.message


def test_a_configuration_that_was_written_is_read_back(plain: dict[str, Any]) -> None:
    assert yaml.safe_load(validate(plain).redacted_yaml()) == plain


def test_a_service_that_nobody_has(composed: Compose) -> None:
    with pytest.raises(ConfigError, match=r"'toy' has no such service, it has renderer") as e:
        composed("+services.foo.gpus=[0]", "+runtime.endpoints.foo.n_concurrent_rollouts=1")
    assert e.value.hint == "runtime.endpoints.foo.skip=true"


def test_a_service_that_the_topology_does_not_place(composed: Compose) -> None:
    with pytest.raises(ConfigError, match=r"services.brain is missing in topology=small") as caught:
        composed("~services.brain", "~runtime.endpoints.brain")
    assert "+services.brain.gpus=[0]" in str(caught.value.hint)


def test_a_run_in_which_every_service_is_skipped(composed: Compose) -> None:
    with pytest.raises(ConfigError, match="without capacity"):
        composed("runtime.endpoints.brain.skip=true", "runtime.endpoints.renderer.skip=true")


def test_two_names_for_the_simulator(composed: Compose) -> None:
    with pytest.raises(ConfigError, match="both name the simulator"):
        composed("sim=toy", "sim.file=x.yaml")


@pytest.mark.parametrize(("n_gpus", "words"), [(1, "one GPU, 0"), (3, "3 GPUs, 0 to 2")])
def test_a_gpu_that_the_node_does_not_have(n_gpus: int, words: str, composed: Compose) -> None:
    with pytest.raises(ConfigError, match=r"services.brain.gpus: there is no GPU 3") as caught:
        composed("device=nvidia", "services.brain.gpus=[0,3]", count_gpus=lambda: n_gpus)
    assert words in caught.value.message
    assert "device=none" in str(caught.value.hint)


def test_a_skipped_service_needs_no_gpu(composed: Compose) -> None:
    skipped = ("services.renderer.gpus=[7]", "runtime.endpoints.renderer.skip=true")
    assert composed("device=nvidia", *skipped, count_gpus=lambda: 1).device == "nvidia"


def test_no_simulator_at_all(composed: Compose) -> None:
    with pytest.raises(ConfigError, match="no simulator is installed") as caught:
        composed("topology=1gpu", folders={})
    assert "sim.file=PATH" in str(caught.value.hint)


def test_several_faults_are_counted(composed: Compose) -> None:
    with pytest.raises(ConfigError, match=r"not 0 \(and 1 more\)"):
        composed("runtime.rollouts=0", "runtime.nr_workers=0")


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=30))
def test_no_text_gets_more_than_a_complaint(text: str) -> None:
    try:
        compose([text], cwd=Path("/nowhere"), count_gpus=lambda: 0)
    except ConfigError as error:
        assert "\n" not in error.message  # noqa: PT017
