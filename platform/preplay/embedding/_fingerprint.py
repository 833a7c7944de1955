"""The fingerprint of an encoder, without loading it again when this cache has met its files before."""

import hashlib
import json
from pathlib import Path

import fsspec

from preplay.artifacts import file_sha256
from preplay.embedding._config import EncoderConfig
from preplay.embedding._encoder import load_encoder, model_location
from preplay.embedding._types import EncoderFingerprint


def encoder_fingerprint(config: EncoderConfig, cache_root: str) -> EncoderFingerprint:
    """Fingerprint of the encoder; remembered under ``cache_root`` by the content of the model's folder.

    Loading a model takes seconds, hashing its files a tenth of one: a run that finds every text in the cache
    needs no more than that.
    """
    folder = Path(model_location(config.model))
    if not folder.is_dir():
        return load_encoder(config).fingerprint
    fs, root = fsspec.core.url_to_fs(cache_root)
    path = f"{root.rstrip('/')}/encoders/{_key(config, folder)}.json"
    if fs.exists(path):
        return EncoderFingerprint.model_validate_json(fs.cat_file(path))
    fingerprint = load_encoder(config).fingerprint
    fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
    fs.pipe_file(path, fingerprint.model_dump_json().encode())
    return fingerprint


def _key(config: EncoderConfig, folder: Path) -> str:
    files = {str(p.relative_to(folder)): file_sha256(p) for p in sorted(folder.rglob("*")) if p.is_file()}
    settings = config.resolved().model_dump(mode="json", exclude={"device", "batch_size", "languages"})
    return hashlib.sha256(json.dumps([settings, files], sort_keys=True).encode()).hexdigest()
