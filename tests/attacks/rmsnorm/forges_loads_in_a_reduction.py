"""A combine function that loads: once a program, as if it were not run once a lane.

test: 1.2
verdict: failed
says: tt.load stands in a function of lanes, not of programs
"""

import mini_triton
import torch

TTIR = """
module {
  tt.func public @forged(%x: !tt.ptr<f32>, %r: !tt.ptr<f32>) {
    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %s = "tt.reduce"(%i) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %p = tt.addptr %x, %a : !tt.ptr<f32>, i32
      %v = tt.load %p : !tt.ptr<f32>
      %w = arith.fptosi %v : f32 to i32
      tt.reduce.return %w : i32
    }) : (tensor<64xi32>) -> i32
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
