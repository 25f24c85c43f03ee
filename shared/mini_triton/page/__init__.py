"""A profile as one self-contained HTML page: no scripts, no fonts, nothing fetched.

page      puts it together: `render`
roofline  the plot's geometry
maps      pictures of which program touched which part of a tensor
source    the kernels' source with bytes and sectors by line
colours   of programs
"""

from mini_triton.page.page import render

__all__ = ["render"]
