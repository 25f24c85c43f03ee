"""The IO formula rounds the number of query blocks down.

breaks: 6
"""


def io_flash(N: int, d: int, Br: int, kv_cached: bool = False) -> int:
    check_blocks(Br, 1)
    times = 1 if kv_cached else N // Br  # wrong: the last block may be short
    return 2 * N * d + N + 2 * N * d * times
