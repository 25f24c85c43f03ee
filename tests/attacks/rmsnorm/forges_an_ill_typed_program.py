"""A program that Triton's front end never makes: a product of a float and an integer.

test: 1.2
verdict: failed
says: bad program: arith.mulf: its operands differ: f32 and i32
"""

import mini_triton
import torch

TTIR = """
module {
  tt.func public @forged(%x: !tt.ptr<f32>, %r: !tt.ptr<f32>) {
    %n = arith.constant 3 : i32
    %a = tt.load %x : !tt.ptr<f32>
    %b = arith.mulf %a, %n : f32
    tt.store %r, %b : !tt.ptr<f32>
    tt.return
  }
}
"""


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    r = torch.empty(len(x))
    launch = mini_triton.Launch("forged", TTIR, (1, 1, 1), [x, r], ["x_ptr", "r_ptr"])
    mini_triton.current_device().launch(launch)
    return x, r
