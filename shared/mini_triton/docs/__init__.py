"""Writes pages of docs/ from the code: `python -m mini_triton.docs > docs/language.md`."""
