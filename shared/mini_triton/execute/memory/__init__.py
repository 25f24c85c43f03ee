"""Loads, stores and atomics: addresses to elements of tensors, within bounds, counted and told."""
