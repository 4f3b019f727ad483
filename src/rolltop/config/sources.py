"""How Hydra reads files of configuration: within bounds, a simulator's own topologies first.

Hydra's own reader of files would wait for a pipe and load an alias bomb. Importing this module
imports Hydra.
"""

from __future__ import annotations

import os
from pathlib import Path

from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigResult

from rolltop.config import descriptions
from rolltop.errors import ConfigError

_HEADER = 512
"""Characters in which Hydra looks for ``# @package``."""


class BoundedFiles(FileConfigSource):
    """A configuration folder whose files are read as descriptions are."""

    @staticmethod
    def scheme() -> str:
        """Return what its addresses begin with."""
        return "rolltop-folder"

    def is_config(self, config_path: str) -> bool:
        """Return whether there is anything of that name: what is no file is told so when read."""
        return os.path.lexists(self._file(config_path))

    def load_config(self, config_path: str) -> ConfigResult:
        """Return what the file holds.

        Raises:
            ConfigError: It cannot be read, is not YAML, or is beyond the bounds.
        """
        file = self._file(config_path)
        group, _, name = config_path.removesuffix(".yaml").rpartition("/")
        place = f"{group}={name}: {file}" if group else str(file)
        text = descriptions.read_text(file, place)
        try:
            header = self._get_header_dict(text[:_HEADER])
        except ValueError as error:
            raise ConfigError(f"{place}: {error}", hint="# @package _global_") from None
        config = descriptions.load_text(text, place, group or "run")
        return ConfigResult(
            config=config, path=self.full_path(), provider=self.provider, header=header
        )

    def _file(self, config_path: str) -> Path:
        return Path(self.path, self._normalize_file_name(config_path))


class OwnTopologies(BoundedFiles):
    """Of such a folder, the topologies alone: it goes before rolltop's own folder."""

    @staticmethod
    def scheme() -> str:
        """Return what its addresses begin with."""
        return "rolltop-topologies"

    def is_config(self, config_path: str) -> bool:
        """Return whether there is a topology of that name."""
        return config_path.startswith("topology/") and super().is_config(config_path)

    def is_group(self, config_path: str) -> bool:
        """Return whether it is the group of topologies, or one in it."""
        return f"{config_path}/".startswith("topology/") and super().is_group(config_path)

    def available(self) -> bool:
        """Return whether the folder has topologies."""
        return self.is_group("topology")


def address(source: type[BoundedFiles], folder: Path) -> str:
    """Return what makes Hydra look into ``folder`` by ``source``, which it gets to know."""
    Plugins.instance().register(source)
    return f"{source.scheme()}://{folder}"
