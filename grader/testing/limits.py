"""What a launch of a submission may take: the same under pytest as in grading."""

from __future__ import annotations

#: Operations. The references' longest launch has 22,222; these take some seconds, after which it is
#: better to hear which line has no end than that time ran out.
MOST_STEPS = 400_000
#: Bytes beyond its tensors: judge and student have 0.75 GB in all, of which torch takes half.
MOST_MEMORY = 128 << 20
