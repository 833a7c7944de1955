"""A driver of its own, to be killed: embeds a dataset in small blocks on its own small Ray."""

import sys

import ray

from preplay.embedding import _dataset, embed_dataset

BLOCK_TEXTS = 32

if __name__ == "__main__":
    dataset, output, cache = sys.argv[1:]
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=100 * 2**20,
    )
    _dataset._BLOCK_TEXTS = BLOCK_TEXTS
    embed_dataset(dataset, output, cache_dir=cache, actors=1)
