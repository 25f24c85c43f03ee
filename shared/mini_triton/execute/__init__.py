"""Executes a `Program` for many programs of a launch at once.

Every value has one leading axis for the programs of a chunk and then the axes of its tile, and each
axis is either full or 1: a value that is the same for all programs, or along an axis, is stored
once.
"""
