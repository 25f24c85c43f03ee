"""Finds in kernels what a GPU would hide: one check a file, all of them observers of the executor.

    bounds      a lane outside of its tensor: always on, raises at once (`execute.bounds`)
    read_only   a write to a tensor that was declared read-only
    races       two programs use an element, one writes it, and nothing orders them
    unwritten   a load of memory that nobody has written
    masked      the value of a masked-off lane reaches a store
    order       a result that depends on the order of the programs

`profile(check="all")` has all of them on; those of `checks.DEFAULT` are on everywhere.
"""
