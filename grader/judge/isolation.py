"""Makes a process fit to hold student code: as another user, with little to see and less to touch.

Nothing here needs more than an ordinary container. What the kernel does not offer is left out and
*said* (`protections`), never assumed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from grader.judge import landlock, seccomp

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_SET_CHILD_SUBREAPER = 1, 4, 38, 36
_PR_CAPBSET_DROP = 24
_CAPABILITY_VERSION_3 = 0x2008_0522
_libc = ctypes.CDLL(None, use_errno=True)

#: User ids of student workers: one per run, so that a run's processes can be killed by their user
#: and two runs do not meet. Above what distributions give to people, below "nobody".
_FIRST_UID, _UIDS = 30_000, 20_000
#: What a student's process may have at most. Processes are counted per user, so there is room for
#: the user's others where the judge is no root.
MAX_FILE_BYTES = 64 << 20
MAX_OPEN_FILES = 256
MAX_PROCESSES = 256
#: System folders that Python and torch read. Of /proc not other processes: their names and command
#: lines are for all to read and for each to write, and so would carry a shard to another rank.
_SYSTEM = (
    *("/usr", "/lib", "/lib64", "/bin", "/sys/devices/system/cpu"),
    *("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version"),
    *("/proc/filesystems", "/proc/sys"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf"),
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@dataclass(frozen=True)
class Confinement:
    """What one worker gets.

    Attributes:
        home: its private folder: HOME, TMPDIR, caches; the only place that it may write to.
        submission: the folder with the submitted files, read only.
        uid: the user to become; None to stay (the judge is no root).
        seconds: CPU seconds, a backstop behind the judge's own clock.
    """

    home: Path
    submission: Path
    uid: int | None
    seconds: int


def worker_uid() -> int | None:
    """The user id for the workers of this process; None if they have to stay with its own.

    They stay if the judge is no root, and if Python lies where other users cannot enter (below
    /root, say) while Landlock can confine them all the same. `BYTEWISE_UID` overrules the choice.
    """
    if os.geteuid() != 0:
        return None
    if asked := os.environ.get("BYTEWISE_UID"):
        return int(asked)
    if _closed_to_others() is not None and landlock.abi():
        return None
    return _FIRST_UID + os.getpid() % _UIDS


def _closed_to_others() -> Path | None:
    """A folder on the way to Python's library that other users cannot enter, if there is one."""
    for prefix in {sys.base_prefix, sys.prefix}:
        library = Path(prefix).resolve()
        for folder in (library, *library.parents):
            if not folder.stat().st_mode & stat.S_IXOTH:
                return folder
    return None


def protections(uid: int | None) -> dict[str, str]:
    """Which protections this machine offers, in words, for the results."""
    version = landlock.abi()
    if uid is not None:
        user = f"as user {uid}"
    elif os.geteuid() == 0:
        closed = _closed_to_others()
        user = f"as root without capabilities: Python lies in {closed}, closed to other users"
    else:
        user = "as the judge's own user (not root)"
    return {
        "process": "student code runs in processes of its own, one a test and rank",
        "user": user,
        "files": f"landlock ABI {version}" if version else "file permissions only (no landlock)",
        "network": "no sockets (seccomp)" if _has_seccomp() else "not restricted (no seccomp)",
        "limits": "time and memory a test; file size, open files, processes, core dumps",
    }


def _has_seccomp() -> bool:
    known = os.uname().machine in ("x86_64", "aarch64")
    return known and _libc.prctl(21, 0, 0, 0, 0) >= 0  # PR_GET_SECCOMP


def close_to_others() -> None:
    """Bars processes of the same user from tracing this one or reading its memory."""
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def die_with_parent() -> None:
    """Has the kernel kill this process when its parent ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def adopt_orphans() -> None:
    """Makes this process the parent of descendants whose own parent ends, `setsid` or not."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def forget_environment() -> None:
    """Empties the environment, and the memory where /proc/self/environ still finds it."""
    os.environ.clear()
    _libc.clearenv()
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[47]), int(fields[48])  # env_start, env_end: fields 50 and 51
    except (OSError, IndexError, ValueError):
        return
    if 0 < start < end:
        ctypes.memset(start, 0, end - start)


def forget_paths() -> None:
    """Leaves only libraries on `sys.path`: nothing of the house is found by name any more."""
    roots = [Path(root).resolve() for root in {sys.prefix, sys.base_prefix}]
    sys.path[:] = [
        entry
        for entry in sys.path
        if entry and any(Path(entry).resolve().is_relative_to(root) for root in roots)
    ]


def confine(settings: Confinement) -> None:
    """Applies everything to this process, for good. Call with no secrets in memory.

    Raises:
        OSError: a protection that the machine has could not be put on.
    """
    os.setsid()
    os.umask(0o077)
    home = str(settings.home)
    os.environ.clear()
    os.environ.update(
        HOME=home,
        TMPDIR=home,
        TRITON_HOME=home,
        TRITON_CACHE_DIR=f"{home}/triton",
        USER="student",
        LOGNAME="student",
        PATH="/usr/local/bin:/usr/bin:/bin",
        LANG="C.UTF-8",
        OMP_NUM_THREADS="1",
        TRITON_DEFAULT_BACKEND="mini_triton",
    )
    os.chdir(home)
    _set_limits(settings)
    _be_killed_first()
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs could not be set")
    landlock.confine(readable=_readable(settings), writable=_writable(settings))
    if settings.uid is not None:
        _become(settings.uid)
    _drop_capabilities()
    seccomp.forbid()
    close_to_others()


def _become(uid: int) -> None:
    """Changes user and group, for good.

    Raises:
        PermissionError: it may not; then nothing has changed.
    """
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _drop_capabilities() -> None:
    """Gives up what makes root root; a change of user has done so already."""
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if _libc.capset(header, nothing) != 0:
        raise OSError(ctypes.get_errno(), "the capabilities could not be dropped")


def _set_limits(settings: Confinement) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_FSIZE, MAX_FILE_BYTES)
    _lower(resource.RLIMIT_NOFILE, MAX_OPEN_FILES)
    _lower(resource.RLIMIT_CPU, settings.seconds)
    if settings.uid is not None:  # else the user's other processes would count
        _lower(resource.RLIMIT_NPROC, MAX_PROCESSES)


def _lower(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (limit, limit))


def _be_killed_first() -> None:
    """If memory runs out all the same, the kernel is to take this process, not the judge."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _readable(settings: Confinement) -> list[Path]:
    import mini_triton

    import grader

    # The grader, and what students' files may import: `shared/`, the folder of the simulators.
    packages = [Path(grader.__path__[0]), Path(mini_triton.__path__[0]).parent]
    prefixes = [Path(sys.prefix), Path(sys.base_prefix)]
    return [*map(Path, _SYSTEM), *prefixes, *packages, settings.submission]


def _writable(settings: Confinement) -> list[Path]:
    return [settings.home, *map(Path, _DEVICES)]


def sweep(uid: int) -> None:
    """Kills every process of a user at once: nothing can be forked fast enough to stay.

    Runs in a helper process that becomes that user, since `kill(-1)` reaches what its caller may
    signal.
    """
    helper = os.fork()
    if helper == 0:
        try:
            _become(uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(helper, 0)
