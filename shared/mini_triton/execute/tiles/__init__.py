"""What a slot holds: tiles of all programs, or formulas of indices and masks for them."""
