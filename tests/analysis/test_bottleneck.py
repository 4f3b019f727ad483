from __future__ import annotations

import pytest

from rolltop.analysis.bottleneck import InstanceLoad, RunLoad, find_bottleneck
from rolltop.analysis.steps import MethodLoad, seconds_by_service, step_shares

SECONDS = 40.0
SERVICES = ("renderer", "driver", "physics", "controller", "trafficsim")


def instance(
    service: str, number: int, *, busy: float, waited: float = 0.0, calls: float = 400
) -> InstanceLoad:
    """Return an instance that served ``busy`` of the time, while calls waited that many seconds."""
    served = busy * SECONDS
    return InstanceLoad(
        service, f"{service}-{number}", calls, served + waited + 0.4, waited, served
    )


def load(*instances: InstanceLoad, **known: object) -> RunLoad:
    defaults: dict[str, object] = {"duration_s": SECONDS, "n_steps": 400, "instances": instances}
    return RunLoad(**(defaults | known))  # type: ignore[arg-type]


@pytest.mark.parametrize("slow", SERVICES)
def test_the_service_that_is_always_busy_is_named(slow: str) -> None:
    instances = [
        instance(s, 0, busy=0.98 if s == slow else 0.2, waited=60 if s == slow else 0.5)
        for s in SERVICES
    ]
    found = find_bottleneck(load(*instances)).bottleneck

    assert found is not None
    assert found.service == slow
    assert found.certainty == "high"
    assert "busy 98 % of 40 s" in found.evidence[0]
    assert "a call waited 150 ms to be served for 98 ms" in found.evidence[1]


def test_the_load_per_instance_counts_not_the_service_as_a_whole() -> None:
    renderers = [instance("renderer", 0, busy=0.9, waited=30)]
    drivers = [instance("driver", i, busy=0.4) for i in range(6)]
    found = find_bottleneck(load(*renderers, *drivers)).bottleneck

    assert found is not None
    assert found.service == "renderer"


def test_of_two_that_are_equally_busy_the_one_waited_for_is_named() -> None:
    found = find_bottleneck(
        load(
            instance("physics", 0, busy=0.93, waited=2), instance("driver", 0, busy=0.91, waited=40)
        )
    ).bottleneck

    assert found is not None
    assert found.service == "driver"
    assert found.certainty == "low"


def test_where_nobody_is_busy_the_largest_part_of_a_step_is_named() -> None:
    found = find_bottleneck(
        load(
            instance("renderer", 0, busy=0.25),
            *(instance("driver", i, busy=0.2) for i in range(4)),
            instance("physics", 0, busy=0.05),
        )
    ).bottleneck

    assert found is not None
    assert found.service == "driver"
    assert found.resource == "latency"
    assert "no service is busy" in found.evidence[0]


def test_one_slow_instance_of_eight_is_in_the_evidence() -> None:
    others = [instance("renderer", i, busy=0.8, waited=5, calls=400) for i in range(7)]
    slow = instance("renderer", 7, busy=1.0, waited=40, calls=100)
    found = find_bottleneck(load(*others, slow)).bottleneck

    assert found is not None
    assert any("renderer-7 serves a call in 400 ms, the others in 80 ms" in e
               for e in found.evidence)  # fmt: skip


def test_full_event_loops_without_a_busy_service_are_the_runtime() -> None:
    found = find_bottleneck(load(instance("renderer", 0, busy=0.3), worker_work=0.97)).bottleneck

    assert found is not None
    assert (found.service, found.resource) == ("runtime", "worker")


OWN_WORK = [
    MethodLoad("renderer", "render", 6350, 6350 * 0.0005),
    MethodLoad("driver", "drive", 6350, 6350 * 0.0004),
]
"""Calls of 0.9 ms in all, in a step of 6.3 ms."""


def own_work(*instances: InstanceLoad, **known: object) -> RunLoad:
    """Return a run whose steps pass in the worker: 6.3 ms each, of which 0.9 ms in calls."""
    defaults: dict[str, object] = {"n_steps": 6350, "step_s": 0.0063, "methods": OWN_WORK}
    return load(*instances, **(defaults | known))


SILENT = InstanceLoad("renderer", "renderer-0", 6350, 6350 * 0.0005)


@pytest.mark.parametrize("instances", [(), (SILENT,), (instance("renderer", 0, busy=0.08),)])
def test_a_worker_always_at_work_is_the_limit_whether_or_not_servers_say_their_times(
    instances: tuple[InstanceLoad, ...],
) -> None:
    found = find_bottleneck(own_work(*instances, worker_work=1.0)).bottleneck

    assert found is not None
    assert (found.service, found.resource, found.certainty) == ("runtime", "worker", "medium")
    assert found.evidence[0].startswith("the workers' event loops were at work 100 % of 40 s [")
    assert found.evidence[1].startswith(
        "calls take 0.9 ms of a step of 6.3 ms, the rest passes in the worker ["
    )


def test_full_event_loops_are_the_limit_also_where_nothing_is_called() -> None:
    found = find_bottleneck(load(worker_work=1.0)).bottleneck

    assert found is not None
    assert (found.service, found.resource) == ("runtime", "worker")


def test_full_event_loops_with_long_calls_of_unknown_times_are_not_certain() -> None:
    methods = [MethodLoad("renderer", "render", 400, 4.0), MethodLoad("driver", "drive", 400, 2.8)]
    found = find_bottleneck(load(SILENT, methods=methods, step_s=0.012, worker_work=0.95))

    assert found.bottleneck is not None
    assert (found.bottleneck.service, found.bottleneck.certainty) == ("runtime", "low")
    assert found.bottleneck.evidence[1].startswith(
        "calls overlap: 17 ms of them in a step of 12 ms ["
    )


@pytest.mark.parametrize("instances", [(SILENT,), (instance("renderer", 0, busy=0.08, waited=3),)])
@pytest.mark.parametrize("work", [None, 0.6])
def test_no_service_is_named_by_calls_that_are_a_small_part_of_a_step(
    instances: tuple[InstanceLoad, ...], work: float | None
) -> None:
    found = find_bottleneck(own_work(*instances, worker_work=work)).bottleneck

    assert found is not None
    assert (found.service, found.resource, found.certainty) == ("runtime", "worker", "low")
    assert "calls take 0.9 ms of a step of 6.3 ms" in found.evidence[0]


def test_calls_that_are_most_of_a_step_name_a_service() -> None:
    found = find_bottleneck(own_work(SILENT, step_s=0.0015, worker_work=0.4)).bottleneck

    assert found is not None
    assert (found.service, found.resource) == ("renderer", "unknown")


def test_full_event_loops_beside_a_busy_service_are_only_evidence() -> None:
    found = find_bottleneck(
        load(instance("renderer", 0, busy=0.95, waited=30), worker_work=0.97)
    ).bottleneck

    assert found is not None
    assert found.service == "renderer"
    assert any("event loops were at work 97 %" in line for line in found.evidence)


def test_serving_that_is_cpu_names_the_cpu_and_a_delay_does_not() -> None:
    busy = instance("renderer", 0, busy=0.95, waited=30)
    on_cpu = find_bottleneck(load(busy, cpu={"renderer": 0.9})).bottleneck
    asleep = find_bottleneck(load(busy, cpu={"renderer": 0.1})).bottleneck

    assert on_cpu is not None
    assert on_cpu.resource == "cpu"
    assert asleep is not None
    assert asleep.resource == "slots"


def test_without_times_of_the_servers_the_longest_calls_are_a_weak_sign() -> None:
    silent = [InstanceLoad("renderer", "renderer-0", 400, 40.0)]
    methods = [
        MethodLoad("renderer", "batch_render_rgb", 400, 40.0),
        MethodLoad("driver", "drive", 400, 8.0),
        MethodLoad("driver", "submit_route", 400, 2.0),
    ]
    found = find_bottleneck(load(*silent, methods=methods)).bottleneck

    assert found is not None
    assert (found.service, found.resource, found.certainty) == ("renderer", "unknown", "low")
    assert "80 % of the time of all calls: 100 ms a step" in found.evidence[0]


def test_a_service_that_does_not_say_its_times_may_be_the_slower_one() -> None:
    methods = [
        MethodLoad("renderer", "batch_render_rgb", 400, 400.0),
        MethodLoad("driver", "drive", 400, 40.0),
    ]
    found = find_bottleneck(
        load(
            InstanceLoad("renderer", "renderer-0", 400, 400.0),
            instance("driver", 0, busy=0.9, waited=4),
            methods=methods,
        )
    ).bottleneck

    assert found is not None
    assert found.service == "driver"
    assert found.certainty == "low"
    assert any("renderer does not say" in line for line in found.evidence)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (load(n_steps=0), "no worker recorded a step"),
        (load(), "no worker recorded a call to a service"),
    ],
)
def test_no_series_are_no_bottleneck(run: RunLoad, reason: str) -> None:
    found = find_bottleneck(run)

    assert found.bottleneck is None
    assert found.reason == reason


def test_a_step_is_shared_out_among_its_calls() -> None:
    shares = step_shares(
        [
            MethodLoad("driver", "submit_route", 800, 4.0),
            MethodLoad("renderer", "batch_render_rgb", 400, 12.0, p95_s=0.05),
            MethodLoad("driver", "close_session", 0, 0.0),
        ],
        n_steps=400,
    )

    assert [s.method for s in shares] == ["batch_render_rgb", "submit_route"]
    assert shares[0].share == 0.75
    assert shares[0].p95_s == 0.05
    assert shares[1].calls_per_step == 2.0
    assert shares[1].mean_s == 0.005
    assert seconds_by_service(shares) == {"renderer": 0.03, "driver": 0.01}


def test_no_step_is_shared_out_by_nobody() -> None:
    assert step_shares([MethodLoad("driver", "drive", 1, 1.0)], 0) == ()
