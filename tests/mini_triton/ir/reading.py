"""Reads the operations of a test."""

from mini_triton.ir.parser import parse


def body_of(text, arguments="%x: i32, %p: !tt.ptr<f32>"):
    """The operations of a kernel with this body."""
    program = parse(f"module {{\n tt.func public @k({arguments}) {{\n{text}\n tt.return\n }}\n}}\n")
    return program.kernel.body.entry.ops[:-1]
