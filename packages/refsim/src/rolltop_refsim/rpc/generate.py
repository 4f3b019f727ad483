"""Write the modules generated from the protos: ``python -m rolltop_refsim.rpc.generate [FOLDER]``.

Needs grpcio-tools, which only developers have. With FOLDER the modules go there, not into the
package: the tests compare them with what is committed.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
PROTOS = tuple(sorted(HERE.glob("*.proto")))


def generate(folder: Path) -> list[Path]:
    """Write ``rolltop_refsim/rpc/*_pb2{.py,.pyi,_grpc.py}`` under ``folder``; return the files."""
    from grpc_tools import protoc  # type: ignore[import-untyped]

    root = HERE.parents[1]
    for proto in PROTOS:
        argv = ["protoc", f"--proto_path={root}", f"--python_out={folder}", f"--pyi_out={folder}"]
        if "\nservice " in proto.read_text(encoding="utf-8"):
            argv.append(f"--grpc_python_out={folder}")
        if protoc.main([*argv, str(proto)]) != 0:
            raise RuntimeError(f"{proto}: protoc failed; what it said stands above")
    return sorted((folder / HERE.relative_to(root)).glob("*_pb2*"))


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parents[1])
