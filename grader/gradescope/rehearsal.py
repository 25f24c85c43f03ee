"""A folder tree and processes as in Gradescope's container, as near as one comes without Docker.

Below a temporary folder there are `autograder/` (for /autograder) and `opt/bytewise`. The scripts
are told so by their environment, and are run as they are in the zip: as root, if this is root, with
an unprivileged user for student code. The machine's own packages are not touched.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from grader.gradescope import meter
from grader.gradescope.box import Box
from grader.gradescope.meter import Usage
from grader.gradescope.submissions import Attempt
from grader.manifest import Assignment

#: Installing may have to download gigabytes.
SETUP_SECONDS = 2400
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: What pip needs to reach its indexes from here; a container on the open network needs none.
_FOR_PIP = ("PIP_", "SSL_CERT", "REQUESTS_CA", "CURL_CA", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
#: A little more than the harness would give, so that the scripts' own limit is seen to work.
_SLACK = 30


class RehearsalError(Exception):
    """The rehearsal could not take place; the message says why."""


class Rehearsal:
    """One container to be; a context manager that takes everything away again.

    Args:
        archive: the zip.
        assignment: what it grades.

    Attributes:
        root: the autograder's folder, which has the name /autograder in a container.
        prefix: where Python and its packages are.

    Raises:
        RehearsalError: the zip lacks one of the two scripts, or the script is not executable.
    """

    def __init__(self, archive: Path, assignment: Assignment) -> None:
        self._assignment = assignment
        self._folder = Path(tempfile.mkdtemp(prefix="bytewise-gradescope-")).resolve()
        try:
            self._folder.chmod(0o755)  # student code has to enter
            self.root = self._folder / "autograder"
            self.prefix = self._folder / "opt" / "bytewise"
            for folder in ("source", "submission", "results"):
                (self.root / folder).mkdir(parents=True)
            (self._folder / "tmp").mkdir()
            (self._folder / "tmp").chmod(0o1777)
            unpack(archive, self.source)
            for script in ("setup.sh", "run_autograder"):
                if not os.access(self.source / script, os.X_OK):
                    raise RehearsalError(f"{archive} has no executable {script} at its root")
            shutil.copy(self.source / "run_autograder", self.root)
        except BaseException:
            self.close()
            raise

    @property
    def source(self) -> Path:
        """Where the zip is unpacked."""
        return self.root / "source"

    @property
    def student(self) -> int | None:
        """The user that `setup.sh` has made for student code; None if it could not."""
        try:
            return int((self.prefix / "student.uid").read_text())
        except FileNotFoundError:
            return None

    @property
    def _user(self) -> str:
        """One a process, so that two rehearsals do not kill each other's students."""
        return f"bytewise-{os.getpid()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def setup(self, python: Path | None = None) -> Usage:
        """Runs `setup.sh`.

        Args:
            python: the Python to build on; None leaves the choice to the script.
        """
        extra = {
            "BYTEWISE_USER": self._user,
            "BYTEWISE_SYSTEM": "keep",
            "PATH": f"{_SYSTEM_PATH}:{os.environ.get('PATH', '')}",
        }
        if python is not None:
            extra["BYTEWISE_PYTHON"] = str(python)
        extra |= {k: v for k, v in os.environ.items() if k.upper().startswith(_FOR_PIP)}
        return meter.run(
            [str(self.source / "setup.sh")],
            log=self.log("setup"),
            seconds=SETUP_SECONDS,
            environment=self._environment() | extra,
            folder=self.root,
        )

    def grade(self, attempt: Attempt, box: Box | None, seconds: float) -> tuple[Usage, Any]:
        """Hands a submission in.

        Args:
            attempt: the submission.
            box: what to run it in.
            seconds: after which the harness would end it.

        Returns:
            What it took, and the content of results.json; None if there is none or it is no JSON.
        """
        for folder in ("submission", "results"):
            shutil.rmtree(self.root / folder)
            (self.root / folder).mkdir()
        attempt.write(self.root / "submission")
        metadata = json.dumps(metadata_of(self._assignment), indent=2)
        (self.root / "submission_metadata.json").write_text(metadata, encoding="utf-8")
        command = [str(self.root / "run_autograder")]
        usage = meter.run(
            box.command(command) if box else command,
            log=self.log(attempt.name),
            seconds=seconds + _SLACK,
            environment=self._environment(),
            folder=self.root,
        )
        try:
            text = (self.root / "results" / "results.json").read_text(encoding="utf-8")
            return usage, json.loads(text)
        except (OSError, ValueError):
            return usage, None

    def log(self, name: str) -> Path:
        """The file with what a step has printed."""
        return self._folder / f"{name}.log"

    def close(self) -> None:
        """Removes everything: files, and the user if one was made."""
        shutil.rmtree(self._folder, ignore_errors=True)
        if os.geteuid() == 0:
            with contextlib.suppress(FileNotFoundError):
                subprocess.run(["userdel", self._user], capture_output=True, check=False)

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": _SYSTEM_PATH,
            "HOME": os.environ.get("HOME", "/root"),
            "LANG": "C.UTF-8",
            "TMPDIR": str(self._folder / "tmp"),  # what a killed grader leaves goes with the rest
            "AUTOGRADER_ROOT": str(self.root),
            "BYTEWISE_PREFIX": str(self.prefix),
        }


def unpack(archive: Path, into: Path) -> None:
    """Unpacks a zip of our own, as `unzip` does: with its permissions."""
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            path = Path(opened.extract(member, into))
            if not member.is_dir():
                path.chmod((member.external_attr >> 16) & 0o777)


def metadata_of(assignment: Assignment) -> dict[str, Any]:
    """A submission_metadata.json as the harness writes it."""
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    due = now + datetime.timedelta(days=1)
    return {
        "id": 123456789,
        "created_at": now.isoformat(),
        "submission_method": "upload",
        "users": [{"email": "ada@example.edu", "id": 1815, "name": "Ada Lovelace"}],
        "assignment": {
            "id": 25828,
            "course_id": 1842,
            "title": assignment.title,
            "release_date": (now - datetime.timedelta(days=7)).isoformat(),
            "due_date": due.isoformat(),
            "late_due_date": (due + datetime.timedelta(days=2)).isoformat(),
            "group_submission": False,
            "group_size": None,
            "total_points": str(assignment.total_points),
            "outline": [],
        },
        "previous_submissions": [
            {
                "submission_time": (now - datetime.timedelta(hours=3)).isoformat(),
                "score": 0.0,
                "autograder_error": True,
                "results": {},
            }
        ],
    }
