from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from rolltop_instrument.server import current_stamps
from rolltop_refsim.faults import Fault, FaultsError
from rolltop_refsim.rpc import (
    common_pb2,
    controller_pb2,
    driver_pb2,
    physics_pb2,
    renderer_pb2,
    trafficsim_pb2,
)
from rolltop_refsim.rpc.channel import open_channel
from rolltop_refsim.rpc.controller_pb2_grpc import ControllerStub
from rolltop_refsim.rpc.driver_pb2_grpc import DriverStub
from rolltop_refsim.rpc.physics_pb2_grpc import PhysicsStub
from rolltop_refsim.rpc.renderer_pb2_grpc import RendererStub
from rolltop_refsim.rpc.serving import ServeError, Stop
from rolltop_refsim.rpc.trafficsim_pb2_grpc import TrafficsimStub
from rolltop_refsim.services.hosting import Host, Options
from rolltop_refsim.services.sessions import Sessions
from rolltop_refsim.services.station import CallError, Station
from rolltop_refsim.services.trafficsim import touch
from rolltop_refsim.world.geometry import Pose

STUBS = {
    "renderer": RendererStub,
    "driver": DriverStub,
    "controller": ControllerStub,
    "physics": PhysicsStub,
    "trafficsim": TrafficsimStub,
}


def at(step: int = 0, *, scene: str = "road-0001", seed: int = 1) -> common_pb2.RolloutStep:
    return common_pb2.RolloutStep(uuid="u", attempt=1, scene=scene, seed=seed, step=step)


def session() -> common_pb2.SessionRequest:
    return common_pb2.SessionRequest(rollout=at())


@asynccontextmanager
async def served(harness: Any, service: str, **options: Any) -> AsyncIterator[Any]:
    async with (
        harness.hosting(service, **options) as server,
        open_channel(server.address) as channel,
    ):
        yield STUBS[service](channel)  # type: ignore[no-untyped-call]


async def refused(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


class Request(int):
    """A request that is a number; all that a station looks at is what it is about."""

    rollout = at()


class AbortedError(Exception):
    """How a gRPC context leaves its handler."""


class Context:
    """A gRPC context that does nothing else."""

    async def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise AbortedError(code, details)


async def test_the_renderer_keeps_scenes_and_says_what_loading_took(harness: Any) -> None:
    async with served(harness, "renderer", cache_size=2) as renderer:

        async def render(scene: str, step: int) -> renderer_pb2.BatchRenderRgbReply:
            reply: renderer_pb2.BatchRenderRgbReply = await renderer.batch_render_rgb(
                renderer_pb2.BatchRenderRgbRequest(
                    rollout=at(step, scene=scene), ego=common_pb2.Pose(z=1.0), cameras=["front"]
                )
            )
            return reply

        first = await render("road-0001", 0)
        assert not first.scene.hit
        assert first.scene.seconds > 0
        (image,) = first.images
        assert (image.camera, image.width, image.height) == ("front", 64, 64)
        pixels = np.frombuffer(image.rgb, np.uint8).reshape(64, 64, 3)
        assert pixels.std() > 10
        again = await render("road-0001", 0)
        assert again.scene.hit
        assert again.images == first.images
        assert not (await render("road-0001", 1)).HasField("scene")  # a rollout asks but once
        await render("road-0002", 0)
        await render("road-0003", 0)
        thrown_out = await render("road-0001", 2)
        assert thrown_out.HasField("scene")
        assert not thrown_out.scene.hit
        assert thrown_out.images == first.images

        request = renderer_pb2.BatchRenderRgbRequest(rollout=at(), cameras=["rear"])
        error = await refused(renderer.batch_render_rgb(request))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "cameras are front" in str(error.details())


async def test_the_driver_drives_what_it_was_shown(harness: Any) -> None:
    async with served(harness, "driver") as driver:
        error = await refused(driver.drive(driver_pb2.DriveRequest(rollout=at())))
        assert error.code() is grpc.StatusCode.NOT_FOUND
        await driver.start_session(session())
        error = await refused(driver.drive(driver_pb2.DriveRequest(rollout=at())))
        assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
        image = common_pb2.Image(width=64, height=64, rgb=bytes(64 * 64 * 3))
        egomotion = driver_pb2.EgomotionObservation(rollout=at(), speed_m_s=8.0)
        route = np.array([[0.0, 1.0], [50.0, 1.0]])
        await asyncio.gather(
            driver.submit_image_observation(driver_pb2.ImageObservation(rollout=at(), image=image)),
            driver.submit_egomotion_observation(egomotion),
            driver.submit_route(
                driver_pb2.RouteObservation(
                    rollout=at(), points=route.tobytes(), speed_limit_m_s=7.0
                )
            ),
        )
        reply = await driver.drive(driver_pb2.DriveRequest(rollout=at()))
        points = np.frombuffer(reply.plan.points).reshape(-1, 2)
        assert reply.plan.target_speed_m_s == 7.0
        assert reply.route_deviation_m == pytest.approx(abs(points[-1, 1] - 1.0))
        error = await refused(
            driver.submit_image_observation(
                driver_pb2.ImageObservation(
                    rollout=at(), image=common_pb2.Image(width=64, height=64, rgb=b"short")
                )
            )
        )
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        await driver.close_session(session())
        await driver.close_session(session())  # as often as one likes
        error = await refused(driver.submit_egomotion_observation(egomotion))
        assert error.code() is grpc.StatusCode.NOT_FOUND


async def test_the_controller_repeats_a_step_bit_by_bit(harness: Any) -> None:
    async with served(harness, "controller") as controller:
        start = await controller.start_session(session())
        assert start.vehicle.progress_m == pytest.approx(0.0, abs=0.5)
        straight = np.array([[0.0, 0.0], [10.0, 0.0], [20.0, 0.0]])
        request = controller_pb2.RunRequest(
            rollout=at(),
            state=start.vehicle.state,
            plan=driver_pb2.Plan(points=straight.tobytes(), target_speed_m_s=8.0),
            duration_s=0.1,
        )
        one = await controller.run_controller_and_vehicle(request)
        assert 0.5 < one.vehicle.progress_m < 1.2
        other = controller_pb2.RunRequest()
        other.CopyFrom(request)
        other.rollout.scene = "road-0002"
        elsewhere = await controller.run_controller_and_vehicle(other)
        assert elsewhere != one
        assert await controller.run_controller_and_vehicle(request) == one

        request.state = b"nonsense"
        error = await refused(controller.run_controller_and_vehicle(request))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        request.state, request.plan.points = start.vehicle.state, b"12345678"
        error = await refused(controller.run_controller_and_vehicle(request))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        await controller.close_session(session())


async def test_physics_puts_cars_on_the_ground(harness: Any) -> None:
    async with served(harness, "physics") as physics:
        proposed = [common_pb2.Pose(x=5.0, z=99.0, speed_m_s=3.0), common_pb2.Pose(x=30.0)]
        reply = await physics.ground_intersection(
            physics_pb2.GroundIntersectionRequest(rollout=at(), poses=proposed)
        )
        assert [pose.x for pose in reply.poses] == [5.0, 30.0]
        assert all(abs(pose.z) < 4.0 for pose in reply.poses)
        assert reply.poses[0].z != reply.poses[1].z
        assert reply.poses[0].speed_m_s == 3.0
        far = physics_pb2.GroundIntersectionRequest(rollout=at(), poses=[common_pb2.Pose(x=9e9)])
        error = await refused(physics.ground_intersection(far))
        assert error.code() is grpc.StatusCode.OUT_OF_RANGE


async def test_traffic_moves_and_touches(harness: Any) -> None:
    async with served(harness, "trafficsim") as trafficsim:
        start = await trafficsim.start_session(session())
        request = trafficsim_pb2.SimulateRequest(
            rollout=at(),
            state=start.state,
            ego=common_pb2.Pose(speed_m_s=8.0),
            ego_then=common_pb2.Pose(x=0.8),
            duration_s=0.1,
        )
        moved = await trafficsim.simulate(request)
        assert moved.collisions == 0
        assert [a.x for a in moved.poses] != [b.x for b in start.poses]
        request.ego_then.CopyFrom(moved.poses[0])
        assert (await trafficsim.simulate(request)).collisions == 1
        request.state = b"nonsense"
        error = await refused(trafficsim.simulate(request))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        await trafficsim.close_session(session())


def test_cars_touch_when_their_rectangles_do() -> None:
    car = Pose(0.0, 0.0)
    assert touch(car, Pose(4.3, 0.0))
    assert not touch(car, Pose(4.5, 0.0))
    assert touch(car, Pose(0.0, 1.7))
    assert not touch(car, Pose(0.0, 1.9))
    assert not touch(car, Pose(3.3, 1.9, yaw=-0.3))
    assert touch(car, Pose(3.3, 1.9, yaw=0.3))
    assert touch(car, Pose(2.9, 0.0, yaw=np.pi / 2))
    assert not touch(car, Pose(100.0, 0.0))


async def test_a_delay_is_held_in_the_slot_and_the_wait_of_others_is_seen() -> None:
    station = Station("x-0", n_concurrent=1, fault=Fault(delay_ms=60.0), stop=Stop())
    handle = station.handler("work", lambda request: request, inline=True)

    async def stamps_ms(number: int) -> tuple[float, float]:
        await handle(Request(number), Context())
        stamps = current_stamps()
        return stamps.queue_s * 1e3, stamps.service_s * 1e3

    began_s = time.thread_time()
    times = await asyncio.gather(*(stamps_ms(number) for number in range(3)))
    assert time.thread_time() - began_s < 0.06, "the delay burns CPU"
    assert [service >= 59.9 for _, service in times] == [True] * 3
    assert [queue >= 59.9 * turn for turn, (queue, _) in enumerate(times)] == [True] * 3
    station.close()


async def test_a_failure_is_as_asked_for_and_held_back_as_long(harness: Any) -> None:
    fault = Fault(delay_ms=20.0, fail_ratio=0.5, fail_method="simulate")
    async with served(harness, "trafficsim", fault=fault) as trafficsim:
        await trafficsim.start_session(session())
        start = await trafficsim.start_session(session())
        failed = []
        for step in range(8):
            request = trafficsim_pb2.SimulateRequest(
                rollout=at(step), state=start.state, duration_s=0.1
            )
            call = trafficsim.simulate(request)
            if await call.code() is not grpc.StatusCode.OK:
                assert await call.code() is grpc.StatusCode.INTERNAL
                said = await call.details()
                assert said == "trafficsim-0: simulate: fails, as sim.faults says"
                failed.append(step)
            stamps = dict(await call.trailing_metadata())
            assert int(stamps["rolltop-times-us"].split(",")[1]) >= 20_000
    assert failed == [
        s for s in range(8) if fault.fails("simulate", scene="road-0001", seed=1, attempt=1, step=s)
    ]
    assert 0 < len(failed) < 8


async def test_an_unknown_method_to_fail_is_refused() -> None:
    with pytest.raises(FaultsError, match="unknown method 'steer'; known are start_session"):
        Host(Options("driver", 0, "driver-0", fault=Fault(fail_method="steer")), Stop())


async def test_more_calls_than_any_rollouts_could_make_are_refused() -> None:
    station = Station("x-0", n_concurrent=3, fault=Fault(delay_ms=1.0), stop=Stop())
    handle = station.handler("work", lambda request: request, inline=True)
    outcomes = await asyncio.gather(
        *(handle(Request(number), Context()) for number in range(13)), return_exceptions=True
    )
    assert outcomes[:12] == list(range(12))
    assert isinstance(outcomes[12], AbortedError)
    assert outcomes[12].args[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
    station.close()


async def test_a_fault_of_the_service_itself_is_told_to_its_caller() -> None:
    station = Station("x-0", n_concurrent=1, fault=Fault(), stop=Stop())

    def broken(request: int) -> int:
        raise ZeroDivisionError(request)

    with pytest.raises(AbortedError) as caught:
        await station.handler("work", broken, inline=False)(Request(1), Context())
    assert caught.value.args[0] is grpc.StatusCode.INTERNAL
    assert "x-0: work: ZeroDivisionError" in caught.value.args[1]
    station.close()


async def test_a_thread_that_still_works_keeps_the_slot() -> None:
    station = Station("x-0", n_concurrent=1, fault=Fault(), stop=Stop())
    busy: list[int] = []

    def work(request: int) -> int:
        busy.append(request)
        time.sleep(0.05)
        assert busy == [request]
        busy.remove(request)
        return request

    handle = station.handler("work", work, inline=False)
    first = asyncio.ensure_future(handle(Request(1), Context()))
    await asyncio.sleep(0.01)
    first.cancel()
    assert (await handle(Request(2), Context())) == 2
    with pytest.raises(asyncio.CancelledError):
        await first
    station.close()


async def test_health_says_when_the_service_is_ready_and_when_it_ends(harness: Any) -> None:
    async with (
        harness.hosting("trafficsim") as server,
        open_channel(server.address) as channel,
    ):
        stub = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest()
        assert (await stub.Check(request)).status == health_pb2.HealthCheckResponse.SERVING
        statuses = [(await stub.Check(request)).status]
        watch = stub.Watch(request)
        await watch.read()
        server.stop.request()
        statuses.append((await watch.read()).status)
        assert statuses == [
            health_pb2.HealthCheckResponse.SERVING,
            health_pb2.HealthCheckResponse.NOT_SERVING,
        ]
        watch.cancel()


async def test_a_taken_port_is_an_error_that_names_it(harness: Any) -> None:
    async with harness.hosting("trafficsim") as server:
        port = int(server.address.rpartition(":")[2])
        with pytest.raises(ServeError, match=f"port {port} of 127.0.0.1 is taken"):
            await Host(Options("trafficsim", port, "trafficsim-1"), Stop()).run()


def test_a_full_house_makes_room_for_who_is_gone() -> None:
    now_s = 0.0
    sessions: Sessions[str] = Sessions(2, clock=lambda: now_s)

    def of(uuid: str) -> common_pb2.RolloutStep:
        return common_pb2.RolloutStep(uuid=uuid, attempt=1)

    sessions.start(of("a"), "a")
    sessions.start(of("b"), "b")
    sessions.start(of("b"), "b again")
    assert sessions.get(of("a")) == "a"  # b is now the one that was used longest ago
    with pytest.raises(CallError, match="all 2 sessions"):
        sessions.start(of("c"), "c")
    now_s = 61.0
    sessions.start(of("c"), "c")
    assert sessions.get(of("a")) == "a"
    assert len(sessions) == 2
    with pytest.raises(CallError, match="no session"):
        sessions.get(of("b"))
