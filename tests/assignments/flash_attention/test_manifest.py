"""What the manifest's limits are for."""

from grader import manifest

ASSIGNMENT = manifest.load("flash_attention")


def test_no_test_may_hold_the_scores_of_the_long_ones():
    """8192 × 8192 scores in float32, beside the 200 MB of a worker that has imported torch."""
    tests = [test for test in ASSIGNMENT.tests() if test.method == "test_memory"]
    assert len(tests) == 2
    for test in tests:
        assert ASSIGNMENT.memory_limit_mb_of(test) * 10**6 < 8192**2 * 4 + 200 * 10**6
