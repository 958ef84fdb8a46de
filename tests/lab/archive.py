"""Container images as an archive that `ctr images import` takes, made of layers that are plain tar files."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Image(NamedTuple):
    """`config` as an engine keeps it: Cmd, Entrypoint, Env, User."""

    names: Sequence[str]
    layers: Sequence[Path]
    config: Mapping[str, Any]


def archived(images: Sequence[Image], target: Path) -> Path:
    """A layer that several images have is in it once."""
    digests = {layer: _digest(layer) for image in images for layer in image.layers}
    collected: list[dict[str, Any]] = []
    with tarfile.open(target, "w") as archive:
        for layer, digest in digests.items():
            archive.add(layer, f"{digest}.tar")
        for number, image in enumerate(images):
            ordered = [digests[layer] for layer in image.layers]
            _add(archive, f"{number}.json", _described(image, ordered))
            layers = [f"{digest}.tar" for digest in ordered]
            collected.append({"Config": f"{number}.json", "RepoTags": image.names, "Layers": layers})
        _add(archive, "manifest.json", collected)
    return target


def packed(tree: Path, target: Path) -> None:
    """A layer with everything below a folder, owned by root."""
    with tarfile.open(target, "w") as layer:
        for path in _walk(tree):
            layer.add(path, str(path.relative_to(tree)), recursive=False, filter=_of_root)


def _walk(tree: Path) -> Iterator[Path]:
    for path in sorted(tree.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)


def _of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    return member


def _described(image: Image, digests: Sequence[str]) -> dict[str, Any]:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    layers = {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]}
    return {"architecture": machine, "os": "linux", "rootfs": layers, "config": image.config}


def _add(archive: tarfile.TarFile, name: str, content: object) -> None:
    data = json.dumps(content).encode()
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def _digest(layer: Path) -> str:
    with layer.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
