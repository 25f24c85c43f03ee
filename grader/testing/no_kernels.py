"""The device of code that runs on ranks: there is none to launch kernels on."""

from __future__ import annotations

import mini_triton


class NoKernels:
    """A device that refuses every launch."""

    def launch(self, launch: mini_triton.Launch) -> mini_triton.LaunchRecord:
        """Refuses.

        Raises:
            BadLaunch: always.
        """
        raise mini_triton.BadLaunch(
            f"kernel {launch.kernel}: no kernels are run here; what runs on ranks computes in numpy"
        )
