"""Parts 1 to 3 of the demo: your functions on simulated devices, their bytes and their time."""

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import click
import numpy as np
from comm_sim import ALLREDUCE_ALGOS, NVLINK4, t_formula
from console import fmt_bytes, fmt_time, print_header, print_observations, print_table
from transformer_lab import TINY, Config, backward, forward, init_params

BF16 = 2  # bytes of an element
STANDS_FOR_BF16 = BF16 / 8  # what a byte of float64 counts for on the links


def show(
    headers: Sequence[str], rows: dict[str, Callable[[], Sequence[object]]], see: Sequence[str]
) -> None:
    """A table whose rows need different tasks, by label: those not started follow below it.

    Args:
        headers: of the label, and of the cells.
        rows: what computes the cells of each.
        see: what to see in it, if there is anything.
    """
    found: list[list[object]] = []
    stubs: dict[str, list[str]] = {}
    for label, cells in rows.items():
        try:
            found.append([label, *cells()])
        except NotImplementedError as stub:
            stubs.setdefault(str(stub), []).append(label)
    if found:
        print_table(headers, found)
    for words, labels in stubs.items():
        click.echo(f"not started: {words} ({'; '.join(labels)})")
    if found:
        print_observations(see)


def error(found: object, right: object) -> str:
    """The largest difference."""
    return f"{np.abs(np.asarray(found) - np.asarray(right)).max():.1e}"


def traffic(comm: Any, foretold: float) -> list[object]:
    """What was called, the bytes of the rank that sent most, whether as foretold, and the time."""
    short = {"all_gather_into_tensor": "all_gather", "reduce_scatter_tensor": "reduce_scatter"}
    counts = comm.get_comm_counts().items()
    called = ", ".join(f"{count} {short.get(op, op)}" for op, count in counts) or "none"
    sent = max(map(comm.sent, range(comm.n)))
    mark = "✓" if math.isclose(sent, foretold) else f"✗ {fmt_bytes(foretold)}"
    return [called, fmt_bytes(sent), mark, fmt_time(comm.time)]


#: Headers of what `traffic` returns.
TRAFFIC = ("collectives", "a rank sends", "formula", "time")


# -------------------------------------------------------------------------------------------------
# 1. Sharded products
# -------------------------------------------------------------------------------------------------


def products(lab: ModuleType) -> None:
    """The four cases on 4 devices."""
    n, I, J, K = 4, 512, 1024, 2048
    print_header(f"1. A (I, J) times B (J, K) on {n} devices: I, J, K = {I}, {J}, {K}, bf16")
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((I, J)), rng.standard_normal((J, K))
    whole, part = A @ B, (n - 1) / n

    def case(
        name: str, elements: float, axis: int | None, product: Callable[[Any], list[Any]]
    ) -> Callable[[], Sequence[object]]:
        def cells() -> Sequence[object]:
            comm = lab.make_comm(n, byte_scale=STANDS_FOR_BF16)
            found = product(comm)
            C = [whole] * n if axis is None else np.split(whole, n, axis)
            worst = max((error(c, right) for c, right in zip(found, C, strict=True)), key=float)
            return [name, *traffic(comm, BF16 * elements), worst]

        return cells

    def case3(scatter_axis: int | None) -> Callable[[Any], list[Any]]:
        return lambda comm: lab.matmul_case3(
            comm, lab.shard(A, 1, n), lab.shard(B, 0, n), scatter_axis
        )

    show(
        ["product", "case", *TRAFFIC, "error"],
        {
            "A[I_X, J] · B[J, K] → C[I_X, K]": case(
                "1", 0, 0, lambda comm: lab.matmul_case1(lab.shard(A, 0, n), B)
            ),
            "A[I, J_X] · B[J, K] → C[I, K]": case(
                *("2", part * I * J, None),
                lambda comm: lab.matmul_case2(comm, lab.shard(A, 1, n), B),
            ),
            "A[I, J_X] · B[J_X, K] → C[I, K]": case("3", 2 * part * I * K, None, case3(None)),
            "A[I, J_X] · B[J_X, K] → C[I, K_X]": case("3, scattered", part * I * K, 1, case3(1)),
            "A[I_X, J] · B[J, K_X] → C[I_X, K]": case(
                *("4", part * J * K, 0),
                lambda comm: lab.matmul_case4(comm, lab.shard(A, 0, n), lab.shard(B, 1, n)),
            ),
        },
        [
            "What travels is (n−1)/n of A, of C, or of B; of C twice, if every rank is to have all "
            f"of the sum. Which is the least depends on the shapes: here A has {I * J:,} "
            f"elements, C {I * K:,}, B {J * K:,}.",
            "Case 1 is why one cuts a matrix by columns, case 3 why the next one is cut by rows: "
            "together they are Megatron's pair, with one all-reduce.",
        ],
    )


# -------------------------------------------------------------------------------------------------
# 2. A model
# -------------------------------------------------------------------------------------------------

BATCH, POSITIONS, STEPS = 2, 16, 4
X, LOGITS = BATCH * POSITIONS * TINY.d_model, BATCH * POSITIONS * TINY.vocab  # elements


def inputs(cfg: Config) -> tuple[Any, np.ndarray]:
    """Parameters, and tokens (BATCH, POSITIONS)."""
    tokens = np.random.default_rng(0).integers(0, cfg.vocab, (BATCH, POSITIONS))
    return init_params(cfg), tokens


def forward_on_ranks(lab: ModuleType) -> None:
    """The forward of TINY on 1 to 8 devices, against one."""
    print_header(f"2. TINY on n devices, a forward of {BATCH} × {POSITIONS} tokens, bf16")
    params, tokens = inputs(TINY)
    right = forward(params, TINY, tokens)

    def on(n: int) -> Callable[[], Sequence[object]]:
        def cells() -> Sequence[object]:
            comm = lab.make_comm(n, byte_scale=STANDS_FOR_BF16)
            found = lab.tp_forward(lab.shard_params_tp(params, TINY, n), TINY, tokens, comm)
            foretold = BF16 * (n - 1) / n * (2 * TINY.n_layers * 2 * X + LOGITS)
            return [error(found, right), *traffic(comm, foretold)]

        return cells

    show(
        ["n", "error", *TRAFFIC],
        {str(n): on(n) for n in (1, 2, 4, 8)},
        [
            "Two all-reduces a layer, and one all-gather for the logits, whatever n.",
            "The bytes hardly grow with n, as (n−1)/n, but the time does: in a ring each of 2(n−1) "
            f"steps waits α = {fmt_time(NVLINK4.alpha)}, and messages this small are nothing else.",
        ],
    )


def key_value_heads(lab: ModuleType) -> None:
    """Who holds which KV heads, for models and n that divide well and badly."""
    print_header("   Which KV heads a rank needs, by query heads H, KV heads G and n")

    def on(H: int, G: int, n: int) -> Callable[[], Sequence[object]]:
        def cells() -> Sequence[object]:
            cfg = Config(1, 48, H, G, d_head=6, d_ff=72, vocab=120, max_seq=POSITIONS)
            params, tokens = inputs(cfg)
            groups = [lab.kv_group_of_device(cfg, n, rank) for rank in range(n)]
            shown = " ".join(str(group).replace(" ", "") for group in groups)
            shards = lab.shard_params_tp(params, cfg, n)
            found = lab.tp_forward(shards, cfg, tokens, lab.make_comm(n))
            return [shown, sum(map(len, groups)), error(found, forward(params, cfg, tokens))]

        return cells

    shapes = ((12, 4, 2), (12, 4, 4), (12, 2, 4), (12, 3, 2), (12, 4, 6), (24, 6, 4), (24, 8, 12))
    show(
        ["H, G, n", "KV heads of ranks 0, 1, …", "held", "error"],
        {", ".join(map(str, shape)): on(*shape) for shape in shapes},
        [
            "n divides G: each KV head is at one rank. G divides n: each at n/G. Neither: a rank's "
            "query heads begin amid those of a KV head, and the ranks on both sides hold it.",
        ],
    )


def functions_at_4(lab: ModuleType) -> None:
    """What each function on TINY sends at n = 4, against one device."""
    n, L = 4, TINY.n_layers
    print_header(f"   TINY at n = {n}: what each function sends")
    params, tokens = inputs(TINY)
    right = forward(params, TINY, tokens)
    dlogits = np.random.default_rng(1).standard_normal(right.shape)

    def calling(
        function: Callable[[Any, Any], Any], result: Callable[[Any], object], elements: float
    ) -> Callable[[], Sequence[object]]:
        def cells() -> Sequence[object]:
            comm = lab.make_comm(n, byte_scale=STANDS_FOR_BF16)
            value = function(lab.shard_params_tp(params, TINY, n), comm)
            return [result(value), *traffic(comm, BF16 * (n - 1) / n * elements)]

        return cells

    def same_tokens(found: Any) -> str:
        seen = tokens
        for _ in range(STEPS):
            following = forward(params, TINY, seen)[:, -1].argmax(1)
            seen = np.concatenate([seen, following[:, None]], 1)
        return "same tokens" if np.array_equal(found, seen[:, POSITIONS:]) else "✗ other tokens"

    def gradient_error(found: Any) -> str:
        grads = backward(params, TINY, tokens, dlogits)
        return f"embed's {error(found[0]['embed'], grads['embed'])}"

    token = BATCH * TINY.d_model  # x of one position
    show(
        ["function", "error", *TRAFFIC],
        {
            "tp_forward": calling(
                lambda shards, comm: lab.tp_forward(shards, TINY, tokens, comm),
                lambda found: error(found, right),
                2 * L * 2 * X + LOGITS,
            ),
            f"tp_generate, {STEPS} tokens": calling(
                lambda shards, comm: lab.tp_generate(shards, TINY, tokens, STEPS, comm),
                same_tokens,
                2 * L * 2 * (X + (STEPS - 1) * token) + STEPS * n * 2 * BATCH,
            ),
            "tp_forward_sp": calling(
                lambda shards, comm: lab.tp_forward_sp(shards, TINY, tokens, comm),
                lambda found: error(found, right),
                2 * L * 2 * X + X + LOGITS,
            ),
            "tp_backward": calling(
                lambda shards, comm: lab.tp_backward(shards, TINY, tokens, dlogits, comm),
                gradient_error,
                (4 * L + 1) * 2 * X,
            ),
        },
        [
            f"Decoding sends two numbers a rank and sequence for the head, not {TINY.vocab // n} "
            "logits.",
            "Sequence parallelism cuts each all-reduce into a reduce-scatter and an all-gather: "
            "the same bytes, but for a gather of x before the head, and 1/n of the residual "
            "stream.",
            "The backward does the forward again, so it has twice the all-reduces, and one for the "
            "head, whose logits it does not need.",
        ],
    )


# -------------------------------------------------------------------------------------------------
# 3. All-reduces
# -------------------------------------------------------------------------------------------------

GPUS = 8  # in a node
#: On one switch "hier" is the ring.
ALGOS = tuple(algo for algo in ALLREDUCE_ALGOS if algo != "hier")
#: Which meet: the first is the quicker one below.
MEETINGS = (("rd", "rab"), ("rd", "ring"))


def reduce_time(lab: ModuleType, n: int, algo: str, nbytes: float) -> float:
    """Simulated seconds of an all-reduce of `nbytes`; a few numbers stand for many."""
    few = np.ones(840)  # all n up to 8 divide it
    comm = lab.make_comm(n, byte_scale=nbytes / few.nbytes)
    lab.all_reduce(comm, [few] * n, algo)
    return comm.time


def crossover(n: int, first: str, second: str) -> float:
    """Bytes S at which two algorithms take the same time on NVLink 4.

    Both take a + b·S seconds: what S = 0 takes is a, and what a byte adds is b.
    """
    latencies, slopes = [], []
    for algo in (first, second):
        nothing, gigabyte = (t_formula(algo, n, S, NVLINK4.alpha, NVLINK4.bw) for S in (0, 1e9))
        latencies.append(nothing)
        slopes.append((gigabyte - nothing) / 1e9)
    return (latencies[1] - latencies[0]) / (slopes[0] - slopes[1])


def all_reduces(lab: ModuleType) -> None:
    """Time against size, for each algorithm, and where they meet."""
    n = GPUS
    print_header(f"3. An all-reduce of S bytes on {n} devices, NVLink 4")
    rows = []
    for size in (10**k for k in range(3, 10)):
        times = {algo: reduce_time(lab, n, algo, size) for algo in ALGOS}
        best = min((algo for algo in ALGOS if algo != "innet"), key=times.__getitem__)
        rows.append([fmt_bytes(size), *map(fmt_time, times.values()), best])
    print_table(["S", *ALGOS, "quickest but innet"], rows)
    click.echo()
    rows = []
    for pair in MEETINGS:
        size = crossover(n, *pair)
        times = [reduce_time(lab, n, algo, size) for algo in pair]
        mark = "✓" if math.isclose(*times) else f"✗ {fmt_time(times[1])}"
        multiple = f"{size / NVLINK4.half_size:.2f}·αB"
        rows.append([" = ".join(pair), multiple, fmt_bytes(size), fmt_time(times[0]), mark])
    print_table(["meet", "at S =", "that is", "both take", "simulated"], rows)
    print_observations(
        [
            "Short messages cost steps: doubling (rd) needs lg n, a ring 2(n−1). Long ones cost "
            "bytes: doubling sends all of S in each step, a ring 2(n−1)/n·S altogether, and "
            "Rabenseifner (rab) as few bytes in 2 lg n steps.",
            "A switch that adds (innet) takes every byte once, and α once up and once down: no "
            "algorithm of messages between two ranks comes near.",
        ]
    )
