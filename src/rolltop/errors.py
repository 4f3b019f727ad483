"""Every error that rolltop raises on purpose.

::

    RolltopError
    ├── ConfigError           an override, a key or a value that cannot be used        exit 2
    │   └── RunNotFoundError  RUN on a command line names no run                       exit 2
    ├── LaunchError           a process could not start or died                        exit 3
    │   ├── PortError         no free port in the range                                exit 3
    │   └── ProcessFailedError  (launch.diagnosis) with its failure and outcome        exit 3, 4
    ├── DependencyError       a program (Prometheus, promtool) is missing or too old   exit 2
    ├── PrometheusError       Prometheus did not start, or stopped                     exit 3
    │   └── QueryError        Prometheus did not answer a query, or refused it         exit 3
    └── AnalysisError         there is not enough data for the question                exit 6

The command line prints such an error as one line, with its cure as a second one; anything else is
a fault of ours.
"""

from __future__ import annotations


class RolltopError(Exception):
    """The root: ``message`` says what and where, ``hint`` how to cure it."""

    exit_status = 70

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConfigError(RolltopError):
    """An override, a key or a value that cannot be used."""

    exit_status = 2


class RunNotFoundError(ConfigError):
    """RUN on a command line names no run."""


class LaunchError(RolltopError):
    """A process could not start or died."""

    exit_status = 3


class PortError(LaunchError):
    """There is no free port in the range."""


class DependencyError(RolltopError):
    """A program is missing or too old."""

    exit_status = 2


class PrometheusError(RolltopError):
    """Prometheus did not start, or stopped."""

    exit_status = 3


class QueryError(PrometheusError):
    """Prometheus did not answer a query, or refused it."""


class AnalysisError(RolltopError):
    """There is not enough data for the question."""

    exit_status = 6


def error_text(error: RolltopError | OSError) -> str:
    """Return what a person is told of an error, without its cure."""
    return describe_os_error(error) if isinstance(error, OSError) else error.message


def describe_os_error(error: OSError) -> str:
    """Return the operating system's words for an error, after the place where it names one."""
    said = error.strerror or str(error) or type(error).__name__
    return said if error.filename is None else f"{error.filename}: {said}"
