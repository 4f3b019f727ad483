"""The fake and the real Prometheus answer alike."""

from __future__ import annotations

import pytest

from rolltop.testing.prometheus import FakePrometheus
from rolltop.testing.prometheus_contract import PrometheusContract, history


class TestFake(PrometheusContract):
    @pytest.fixture
    def prometheus(self):
        return FakePrometheus(stored=history()).client()


class TestReal(PrometheusContract):
    @pytest.fixture
    def prometheus(self, real):
        return real
