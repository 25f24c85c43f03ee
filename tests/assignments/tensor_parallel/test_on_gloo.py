"""The solution on real ranks: processes that have their own shard, and talk through gloo."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import spmd
from transformer_lab import TINY, backward, forward, init_params

from tests.assignments.tensor_parallel.comparing import assert_close, assert_gradients
from tests.assignments.tensor_parallel.solution import shard_lab

BOUND = 1e-10
STEPS = 5

#: Query heads, KV heads, and whether the embedding is the head as well.
CASES = {
    2: {
        "aligned": (8, 4, False),
        "tied": (8, 4, True),
        "replicated": (8, 1, False),
        "misaligned": (12, 3, False),
    },
    4: {
        "aligned": (8, 4, False),
        "tied": (8, 4, True),
        "replicated": (8, 2, False),
        "misaligned": (24, 6, False),
    },
}


def model(n, case):
    H, G, tied = CASES[n][case]
    cfg = replace(TINY, n_heads=H, n_kv_heads=G, max_seq=16)
    return cfg, init_params(cfg, seed=n, tied=tied)


def inputs(cfg):
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, cfg.vocab, size=(3, 8))
    return tokens, rng.standard_normal((3, 8, cfg.vocab))


# -------------------------------------------------------------------------------------------------
# On a rank: new processes import this file
# -------------------------------------------------------------------------------------------------


def all_cases(comm, folder):
    """What this rank computes in every case. Of the parameters it reads its own shard's file."""
    (rank,) = comm.ranks
    results = {}
    for case in CASES[comm.n]:
        cfg, shard = pickle.loads((folder / f"{case}-{rank}").read_bytes())
        results[case] = exercise(comm, cfg, [shard])
    return results


def exercise(comm, cfg, held):
    tokens, dlogits = inputs(cfg)
    comm.reset()
    results = {"whole": shard_lab.tp_forward(held, cfg, tokens, comm)}
    results["counts"] = comm.get_comm_counts()
    results["columns"] = shard_lab.tp_forward(held, cfg, tokens, comm, gather_logits=False)[0]
    caches = shard_lab.tp_caches(cfg, held, len(tokens))
    results["with caches"] = [
        shard_lab.tp_forward(held, cfg, tokens[:, start:end], comm, caches)
        for start, end in ((0, 5), (5, 6), (6, 8))
    ]
    results["cached heads"] = [cache.read(0, 8)[0].shape[2] for cache in caches]
    results["sequence parallel"] = shard_lab.tp_forward_sp(held, cfg, tokens, comm)
    results["generated"] = shard_lab.tp_generate(held, cfg, tokens, STEPS, comm)
    results["gradients"] = shard_lab.tp_backward(held, cfg, tokens, dlogits, comm)[0]
    return results


# -------------------------------------------------------------------------------------------------
# In the process of the tests
# -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", CASES)
def test_real_ranks_compute_what_one_device_does(n, tmp_path):
    """All in one test: starting processes takes seconds."""
    for case in CASES[n]:
        cfg, params = model(n, case)
        for rank, shard in enumerate(shard_lab.shard_params_tp(params, cfg, n)):
            (tmp_path / f"{case}-{rank}").write_bytes(pickle.dumps((cfg, shard)))
    ranks = spmd.run(all_cases, n, tmp_path, backend="gloo")
    for case in CASES[n]:
        results = [of_rank[case] for of_rank in ranks]
        cfg, params = model(n, case)
        tokens, dlogits = inputs(cfg)
        for rank, of_rank in enumerate(results):
            check_logits(f"{case}, rank {rank}", of_rank, n, rank, forward(params, cfg, tokens))
            check_caches(case, of_rank, n)
            assert np.array_equal(of_rank["generated"], generated(params, cfg, tokens)), case
            counts = {"all_reduce": 2 * cfg.n_layers, "all_gather_into_tensor": 1}
            assert of_rank["counts"] == counts, case
        gradients = [of_rank["gradients"] for of_rank in results]
        assert_gradients(cfg, gradients, backward(params, cfg, tokens, dlogits), BOUND)


def check_logits(what, results, n, rank, expected):
    for name in ("whole", "sequence parallel"):
        assert_close(f"{what}, {name}", results[name], expected, BOUND)
    in_steps = np.concatenate(results["with caches"], axis=1)
    assert_close(f"{what}, with caches", in_steps, expected, BOUND)
    columns = np.split(expected, n, axis=2)[rank]
    assert_close(f"{what}, columns", results["columns"], columns, BOUND)


def check_caches(case, results, n):
    """A rank's cache has the KV heads that its query heads use, and no others."""
    # Misaligned: 4 query heads share a KV head, and a rank has 6, which use two.
    heads = {"aligned": 4 // n, "tied": 4 // n, "replicated": 1, "misaligned": 2}
    assert results["cached heads"] == [heads[case]], case


def generated(params, cfg, tokens):
    """Greedily, on one device, without a cache."""
    sequence = tokens
    for _ in range(STEPS):
        chosen = forward(params, cfg, sequence)[:, -1].argmax(axis=1)
        sequence = np.concatenate([sequence, chosen[:, None]], axis=1)
    return sequence[:, tokens.shape[1] :]
