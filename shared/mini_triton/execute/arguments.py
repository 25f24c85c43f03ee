"""Arguments of a launch as values of the kernel's parameters."""

from __future__ import annotations

import torch

from mini_triton.errors import BadLaunch
from mini_triton.execute.tiles.affine import INDEX_DTYPES, constant
from mini_triton.execute.tiles.values import Buffer, Pointer, Value
from mini_triton.ir.types import SIGNLESS, Type
from mini_triton.launch import Launch
from mini_triton.location import UNKNOWN

#: The type of a tensor that is reached by an address in memory: that says how it is read.
_ANY_POINTER = Type("ptr", (), Type("i8"))


def bind(
    launch: Launch, kinds: tuple[Type, ...], stored: frozenset[int] | None
) -> tuple[list[Value], list[Buffer], list[Buffer]]:
    """(a value for each parameter, the tensors behind them, those that the kernel may write).

    kinds: types of the kernel's parameters. stored: positions of those through which the kernel may
    store, None if through any. Raises `BadLaunch` for an argument that does not fit its parameter.
    """
    given = len(launch.args) - launch.pointed_to
    if len(kinds) != given:
        raise BadLaunch.at(
            UNKNOWN,
            launch.kernel,
            f"it takes {len(kinds)} arguments that are not constants, {given} were given",
        )
    values: list[Value] = []
    buffers: list[Buffer] = []
    for position, (name, arg) in enumerate(zip(launch.arg_names, launch.args, strict=True)):
        kind = kinds[position] if position < given else _ANY_POINTER
        value = _argument(launch.kernel, name, position, kind, arg)
        if position < given:
            values.append(value)
        if isinstance(value, Pointer) and value.buffer is not None:
            value.buffer.sent_from = launch.addresses.get(position)
            buffers.append(value.buffer)
    written = [b for b in buffers if stored is None or b.position in stored]
    for buffer in buffers:
        buffer.stored_to = any(buffer.overlaps(other) for other in written)
    return values, buffers, written


def _argument(kernel: str, name: str, position: int, kind: Type, arg: object) -> Value:
    if kind.is_pointer:
        return _pointer(kernel, name, position, kind, arg)
    if kind.element not in ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"):
        raise BadLaunch.at(
            UNKNOWN,
            kernel,
            f"argument {name} of type {kind} is not supported by the simulator",
            hint="pass a tensor or a number",
        )
    if not isinstance(arg, (int, float)):
        what = f"argument {name} is {type(arg).__name__}, not a number"
        raise BadLaunch.at(UNKNOWN, kernel, what)
    try:
        number = float(arg) if kind.is_float else int(arg)
    except (ValueError, OverflowError) as error:  # which no launch of Triton's own leads to
        what = f"argument {name} is no {kind}: {error}"
        raise BadLaunch.at(UNKNOWN, kernel, what) from None
    if isinstance(number, float):
        return torch.full((1,), number, dtype=torch.float64).to(kind.dtype)
    bits = number & ((1 << kind.bits) - 1)
    signed = bits - (1 << kind.bits) if kind.bits > 1 and bits >> (kind.bits - 1) else bits
    if kind.dtype in INDEX_DTYPES:
        return constant(signed, kind.dtype)
    return torch.tensor([signed]).to(kind.dtype)


def _pointer(kernel: str, name: str, position: int, kind: Type, arg: object) -> Pointer:
    assert kind.pointee is not None
    dtype = kind.pointee.dtype if not kind.pointee.is_pointer else torch.int64
    if isinstance(arg, int):
        return Pointer(None, constant(arg, torch.int64), None, dtype)
    if not isinstance(arg, torch.Tensor):
        what = f"argument {name} is {type(arg).__name__}, not a tensor"
        raise BadLaunch.at(UNKNOWN, kernel, what)
    if arg.device.type != "cpu" or arg.layout != torch.strided:
        layout = "dense" if arg.layout == torch.strided else str(arg.layout)
        raise BadLaunch.at(
            UNKNOWN,
            kernel,
            f"tensor {name} is {layout} on {arg.device}; the simulator runs on dense CPU tensors",
            hint="create it with device='cpu'" if layout == "dense" else "pass a dense copy of it",
        )
    own = arg.detach()
    span = 1 + sum((n - 1) * s for n, s in zip(own.shape, own.stride(), strict=True))
    flat = own.as_strided((0 if own.numel() == 0 else span,), (1,))
    flat = flat.view(SIGNLESS.get(flat.dtype, flat.dtype))
    buffer = Buffer(name, flat, tuple(own.shape), tuple(own.stride()), position=position)
    return Pointer(buffer, constant(0, torch.int64), None, dtype)
