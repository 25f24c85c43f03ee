"""The golden table of the reference solution; what it passes is tested for all assignments."""

from grader.authoring import golden


def test_which_tests_count_bytes():
    """One public and one hidden test of each kernel task, to the byte."""
    table = golden.read("flash_attention")
    assert set(table) == {"9.6", "9.9", "10.6", "10.9", "11.4", "11.6"}
    for rows in table.values():
        for row in rows:
            assert row["budget"].endswith(f"= {row['bytes']:,} B")
