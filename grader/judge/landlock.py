"""Landlock: what a process and its children may read and write, without privileges (Linux 5.13+).

The rules only ever narrow. They also bar tracing processes outside, and from ABI 4 on all TCP, from
ABI 6 on signals and abstract sockets to processes outside. See landlock(7) and
https://docs.kernel.org/userspace-api/landlock.html.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE = 1 << 14
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | 1 << 15
#: Rights on files known to each ABI, as a mask of the lowest bits.
_RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_TCP_BIND_AND_CONNECT = 0b11
_SCOPE_SOCKETS_AND_SIGNALS = 0b11
_READ = _EXECUTE | _READ_FILE | _READ_DIR

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def abi() -> int:
    """The kernel's version of Landlock; 0 where there is none."""
    version: int = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    return max(version, 0)


def confine(readable: Iterable[Path], writable: Iterable[Path]) -> int:
    """Restricts this process, for good, to paths beneath those given.

    `no_new_privs` has to be set. Paths that do not exist are left out.

    Args:
        readable: may be read and executed.
        writable: may be read and written, but not executed.

    Returns:
        The ABI in force; 0 if the kernel has no Landlock, and then nothing is restricted.

    Raises:
        OSError: the kernel has it but refused the rules.
    """
    version = abi()
    if version == 0:
        return 0
    handled = max(
        (rights for since, rights in _RIGHTS_BY_ABI.items() if since <= version), default=0
    )
    ruleset = _Ruleset(handled)
    size = 8
    if version >= 4:
        ruleset.handled_access_net, size = _TCP_BIND_AND_CONNECT, 16
    if version >= 6:
        ruleset.scoped, size = _SCOPE_SOCKETS_AND_SIGNALS, 24
    rules = _checked(
        _libc.syscall(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), 0)
    )
    try:
        for path in readable:
            _allow(rules, path, _READ & handled)
        for path in writable:
            _allow(rules, path, handled & ~_EXECUTE)
        _checked(_libc.syscall(_RESTRICT_SELF, rules, 0))
    finally:
        os.close(rules)
    return version


def _allow(rules: int, path: Path, rights: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not path.is_dir():
            rights &= _FILE_RIGHTS
        rule = _PathBeneath(rights, beneath)
        _checked(_libc.syscall(_ADD_RULE, rules, _RULE_PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(beneath)


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"landlock: {os.strerror(code)}")
    return result
