"""A small house with one assignment, `ranks`, for what is tried on ranks: nothing to collect."""

collect_ignore_glob = ["*"]
