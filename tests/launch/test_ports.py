"""A leased port is nobody else's: not another run's, not another process's."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rolltop.errors import PortError
from rolltop.launch.ports import PREFERRED, PortLeases, default_range, is_free

if TYPE_CHECKING:
    from collections.abc import Iterator

PORTS = range(15_000, 15_400)


@pytest.fixture
def leases() -> Iterator[PortLeases]:
    with PortLeases(PORTS) as it:
        yield it


def around(port: int, n: int = 1) -> range:
    return range(port, port + n)


def test_leased_ports_are_distinct_free_and_in_the_range(leases):
    ports = leases.lease(50)
    assert len(set(ports)) == 50
    assert set(ports) <= set(PORTS)
    assert all(map(is_free, ports))
    assert leases.held == tuple(ports)
    assert set(leases.lease(50)).isdisjoint(ports)


def test_a_process_can_bind_what_was_leased(leases):
    for port in leases.lease(20):
        with socket.create_server(("127.0.0.1", port)):
            assert not is_free(port)


def test_two_runs_never_get_the_same_port(leases):
    with PortLeases(PORTS) as other:
        ours, theirs = leases.lease(200), other.lease(200)
        assert set(ours) | set(theirs) == set(PORTS)
        with pytest.raises(PortError):
            other.lease()


def test_what_is_released_can_be_leased_again(leases):
    ports = leases.lease(len(PORTS))
    with pytest.raises(PortError):
        leases.lease()
    leases.release([ports[3], 1])
    assert leases.lease() == [ports[3]]
    leases.release()
    assert leases.held == ()
    assert len(leases.lease(len(PORTS))) == len(PORTS)


def test_too_few_ports_are_an_error_that_names_the_range_and_keeps_none(leases):
    with pytest.raises(PortError) as caught:
        leases.lease(len(PORTS) + 1)
    assert caught.value.message == "of ports 15000-15399 only 400 are free, 401 are needed"
    assert caught.value.hint is not None
    assert "ports.range" in caught.value.hint
    assert leases.held == ()


def test_a_port_that_turned_out_taken_is_replaced_for_good(leases):
    port = leases.lease()[0]
    other = leases.replace(port)
    assert other != port
    assert set(leases.held) == {port, other}
    with pytest.raises(PortError, match="15400 is not leased"):
        leases.replace(15_400)


@pytest.mark.parametrize(
    ("family", "address"),
    [
        (socket.AF_INET, "127.0.0.1"),
        (socket.AF_INET, "0.0.0.0"),  # noqa: S104
        (socket.AF_INET, "127.0.0.7"),
        (socket.AF_INET6, "::1"),
        (socket.AF_INET6, "::"),
    ],
)
@pytest.mark.parametrize("listens", [False, True])
@pytest.mark.parametrize("option", [None, socket.SO_REUSEADDR, socket.SO_REUSEPORT])
def test_a_port_that_somebody_has_bound_is_passed_over(leases, family, address, listens, option):
    port = leases.lease()[0]
    leases.release()
    with socket.socket(family) as taken:
        if option is not None:
            taken.setsockopt(socket.SOL_SOCKET, option, 1)
        taken.bind((address, port))
        if listens:
            taken.listen()
        assert not is_free(port)
        with PortLeases(around(port)) as other, pytest.raises(PortError):
            other.lease()
    assert is_free(port)


def test_without_ipv6_the_other_family_decides(monkeypatch):
    create = socket.socket

    def without(family: int, kind: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(97, "Address family not supported by protocol")
        return create(family, kind)

    monkeypatch.setattr(socket, "socket", without)
    with PortLeases(PORTS) as leases:
        assert len(leases.lease(3)) == 3


def test_the_search_starts_at_a_random_place():
    starts = set()
    for seed in range(20):
        with PortLeases(PORTS, rng=random.Random(seed)) as leases:
            starts.update(leases.lease())
    assert len(starts) > 5


def test_other_systems_are_refused_in_words(monkeypatch, leases):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(PortError, match="only Linux"):
        leases.lease()


LEASE = """
import sys
from rolltop.launch.ports import PortLeases
leases = PortLeases(range(16_000, 16_600))
print(*leases.lease(50), flush=True)
sys.stdin.read()
"""


def test_ten_processes_at_once_get_five_hundred_ports():
    with contextlib.ExitStack() as stack:
        argv = [sys.executable, "-c", LEASE]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        runs = [stack.enter_context(subprocess.Popen(argv, text=True, **pipes)) for _ in range(10)]
        ports = [port for run in runs for port in run.stdout.readline().split()]
        assert len(ports) == len(set(ports)) == 500
        with PortLeases(range(16_000, 16_600)) as rest:
            assert len(rest.lease(100)) == 100
        runs[0].kill()
        runs[0].wait()
        with PortLeases(range(16_000, 16_600)) as rest:
            assert len(rest.lease(150)) == 150


# -- ranges -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ephemeral", "expected"),
    [
        ("32768\t60999\n", PREFERRED),
        ("1024 9999", PREFERRED),
        ("1024 65535", PREFERRED),
        ("16000 65535", range(6000, 16_000)),
        ("1024 40000", range(55_536, 65_536)),
        ("3000 65535", range(1024, 3000)),
    ],
)
def test_the_default_stays_out_of_the_way_of_outgoing_connections(ephemeral, expected):
    assert default_range(ephemeral) == expected


def test_the_default_is_used():
    with PortLeases() as leases:
        assert leases.lease()[0] in default_range()
