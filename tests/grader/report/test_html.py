from html.parser import HTMLParser

from grader.report import html


class Page(HTMLParser):
    """Collects tags and text; fails on a tag that is closed out of order."""

    VOID = frozenset({"meta", "link", "br", "img"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_one_page_that_fetches_nothing(report):
    page = Page(html.render(report))
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name in ("src", "href")]
    assert "3 of 8.5 points" in page.text
    assert "2·M·N·s = 2·64·100·4 = 51,200 B" in page.text
    assert "The grader itself failed on 1.4" in page.text


def test_what_students_write_is_only_text(report):
    page = Page(html.render(report))
    assert "<script>alert(1)</script>" in page.text
    assert "<b>Rows</b>" in page.text
    assert "b" not in page.tags


def test_lines_carry_their_bytes(report):
    lines = html.listing(report)["toy.py"]
    assert [(line.number, line.loaded, line.test) for line in lines] == [
        (1, 0, ""),
        (2, 76_800, "1.1"),
    ]
    assert "x = tl.load(p) # <&>" in Page(html.render(report)).text


def test_without_kernels_a_source_has_no_columns_of_bytes(report):
    tests = [
        test.model_copy(
            update={
                "evidence": [
                    row.model_copy(update={"lines": ()}) if row.kind == "traffic" else row
                    for row in test.evidence
                ]
            }
        )
        for test in report.tasks[0].tests
    ]
    tasks = [report.tasks[0].model_copy(update={"tests": tests}), *report.tasks[1:]]
    with_bytes, without = (
        html.render(report),
        html.render(report.model_copy(update={"tasks": tasks})),
    )
    assert 'class="load"' in with_bytes
    assert "Bytes that a line" in with_bytes
    assert 'class="load"' not in without
    assert "Bytes that a line" not in without
    assert "x = tl.load(p) # <&>" in Page(without).text


def test_the_page_is_written(report, tmp_path):
    html.write(report, tmp_path / "deep" / "report.html")
    assert (tmp_path / "deep" / "report.html").read_text(encoding="utf-8").startswith("<!doctype")
