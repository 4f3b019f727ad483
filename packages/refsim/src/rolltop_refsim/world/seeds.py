"""Random streams that depend on their key alone.

Python salts ``hash()`` per process; a scene made of it would differ from process to process. Here
a key is hashed with SHA-256 and seeds a NumPy ``SeedSequence``, so that each service of a run
makes the same scene from the same name.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream(*key: str | int) -> np.random.Generator:
    """Opens the random stream of a key.

    Args:
        key: What the stream is for, e.g. ``("scene", "road-0001", 7, "trees")``. Parts are
            separated, so that ``("a", "bc")`` and ``("ab", "c")`` are different streams.

    Returns:
        A generator whose numbers are the same for the same key in each process.
    """
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in key)
    digest = hashlib.sha256(text.encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))
