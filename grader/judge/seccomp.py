"""A seccomp filter: system calls that student code has no use for fail with EPERM.

No network (`socket`), no looking into other processes (`ptrace`, `process_vm_*`), no change of a
file's owner, mode or attributes (which Landlock does not cover), no kernel machinery that sandboxes
are usually left through. Nothing either that would carry bytes from one rank to another past the
judge: shared memory, semaphores and queues of the system, locks on files that both can read and
whose holders the kernel names, notices of who opens them. The filter is inherited and cannot be
taken off.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
_ALLOW = 0x7FFF_0000
_FAIL_EPERM = 0x0005_0001
_KILL_PROCESS = 0x8000_0000

#: Classic BPF: load a word of the call's description; compare; return.
_LOAD, _JUMP_ALWAYS, _JUMP_EQUAL, _JUMP_ABOVE, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x06
_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_SECOND = 0, 4, 24  # the second argument's lower half

#: Numbers of the forbidden calls, and the audit code, per machine.
_ARCHES = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
_FORBIDDEN: dict[str, dict[str, int]] = {
    "x86_64": {
        "socket": 41,
        "chmod": 90,
        "fchmod": 91,
        "chown": 92,
        "fchown": 93,
        "lchown": 94,
        "ptrace": 101,
        "shmget": 29,
        "shmat": 30,
        "shmctl": 31,
        "semget": 64,
        "semop": 65,
        "semctl": 66,
        "msgget": 68,
        "msgsnd": 69,
        "msgrcv": 70,
        "msgctl": 71,
        "flock": 73,
        "semtimedop": 220,
        "mq_open": 240,
        "inotify_init": 253,
        "inotify_init1": 294,
        "fanotify_init": 300,
        "mount": 165,
        "umount2": 166,
        "setxattr": 188,
        "lsetxattr": 189,
        "fsetxattr": 190,
        "removexattr": 197,
        "lremovexattr": 198,
        "fremovexattr": 199,
        "keyctl": 250,
        "add_key": 248,
        "request_key": 249,
        "fchownat": 260,
        "fchmodat": 268,
        "unshare": 272,
        "perf_event_open": 298,
        "setns": 308,
        "open_by_handle_at": 304,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "kcmp": 312,
        "bpf": 321,
        "userfaultfd": 323,
        "io_uring_setup": 425,
        "pidfd_getfd": 438,
        "fchmodat2": 452,
    },
    "aarch64": {
        "inotify_init1": 26,
        "flock": 32,
        "mq_open": 180,
        "msgget": 186,
        "msgctl": 187,
        "msgrcv": 188,
        "msgsnd": 189,
        "semget": 190,
        "semctl": 191,
        "semtimedop": 192,
        "semop": 193,
        "shmget": 194,
        "shmctl": 195,
        "shmat": 196,
        "fanotify_init": 262,
        "setxattr": 5,
        "lsetxattr": 6,
        "fsetxattr": 7,
        "removexattr": 14,
        "lremovexattr": 15,
        "fremovexattr": 16,
        "umount2": 39,
        "mount": 40,
        "fchmod": 52,
        "fchmodat": 53,
        "fchownat": 54,
        "fchown": 55,
        "unshare": 97,
        "ptrace": 117,
        "socket": 198,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "perf_event_open": 241,
        "open_by_handle_at": 265,
        "setns": 268,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "kcmp": 272,
        "bpf": 280,
        "userfaultfd": 282,
        "io_uring_setup": 425,
        "pidfd_getfd": 438,
        "fchmodat2": 452,
    },
}
#: `fcntl`, and its commands on locks, leases and notices, which fail as well: F_GETLK, F_SETLK,
#: F_SETLKW, F_OFD_* of these, F_SETLEASE, F_GETLEASE, F_NOTIFY.
_FCNTL = {"x86_64": 72, "aarch64": 25}
_LOCKS = (5, 6, 7, 36, 37, 38, 1024, 1025, 1026)
#: x86-64 also answers calls of the x32 ABI, whose numbers have this bit: all refused.
_X32_BIT = 0x4000_0000

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def _instruction(code: int, yes: int, no: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _filter(machine: str) -> bytes:
    program = [
        _instruction(_LOAD, 0, 0, _OFFSET_ARCH),
        _instruction(_JUMP_EQUAL, 1, 0, _ARCHES[machine]),
        _instruction(_RETURN, 0, 0, _KILL_PROCESS),
        _instruction(_LOAD, 0, 0, _OFFSET_NUMBER),
    ]
    numbers = sorted(_FORBIDDEN[machine].values())
    checks = [(_JUMP_ABOVE, _X32_BIT), *((_JUMP_EQUAL, number) for number in numbers)]
    program += _refused(checks)
    program += [
        _instruction(_JUMP_EQUAL, 1, 0, _FCNTL[machine]),
        _instruction(_RETURN, 0, 0, _ALLOW),
        _instruction(_LOAD, 0, 0, _OFFSET_SECOND),
    ]
    program += _refused([(_JUMP_EQUAL, command) for command in _LOCKS])
    program.append(_instruction(_RETURN, 0, 0, _ALLOW))
    return b"".join(program)


def _refused(checks: list[tuple[int, int]]) -> list[bytes]:
    """Fails if one of these comparisons holds for what is loaded; else goes on behind."""
    last = len(checks) - 1
    jumps = [_instruction(code, last - i + 1, 0, value) for i, (code, value) in enumerate(checks)]
    return [*jumps, _instruction(_JUMP_ALWAYS, 0, 0, 1), _instruction(_RETURN, 0, 0, _FAIL_EPERM)]


def forbid() -> bool:
    """Installs the filter in this thread, for good; `no_new_privs` has to be set.

    Returns:
        Whether it is on: False on machines it does not know and kernels without seccomp.
    """
    machine = platform.machine()
    if machine not in _FORBIDDEN:
        return False
    code = _filter(machine)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p).value)
    result: int = _libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0)
    return result == 0


def forbidden_names() -> tuple[str, ...]:
    """The calls that fail, for the report."""
    return tuple(sorted(_FORBIDDEN.get(os.uname().machine, {})))
