"""A seccomp filter: system calls that student code has no use for fail with EPERM.

No network (`socket`), no looking into other processes (`ptrace`, `process_vm_*`), no change of a
file's owner, mode or attributes (which Landlock does not cover), no kernel machinery that sandboxes
are usually left through. The filter is inherited and cannot be taken off.
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
_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _RETURN = 0x20, 0x15, 0x35, 0x06
_OFFSET_NUMBER, _OFFSET_ARCH = 0, 4

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
#: x86-64 also answers calls of the x32 ABI, whose numbers have this bit: all refused.
_X32_BIT = 0x4000_0000

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def _instruction(code: int, yes: int, no: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _filter(machine: str) -> bytes:
    numbers = sorted(_FORBIDDEN[machine].values())
    program = [
        _instruction(_LOAD, 0, 0, _OFFSET_ARCH),
        _instruction(_JUMP_EQUAL, 1, 0, _ARCHES[machine]),
        _instruction(_RETURN, 0, 0, _KILL_PROCESS),
        _instruction(_LOAD, 0, 0, _OFFSET_NUMBER),
    ]
    checks = [_instruction(_JUMP_EQUAL, len(numbers) - i, 0, n) for i, n in enumerate(numbers)]
    program += [_instruction(_JUMP_ABOVE, len(numbers) + 1, 0, _X32_BIT), *checks]
    program += [_instruction(_RETURN, 0, 0, _ALLOW), _instruction(_RETURN, 0, 0, _FAIL_EPERM)]
    return b"".join(program)


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
