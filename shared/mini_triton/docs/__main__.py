"""Prints docs/language.md."""

from mini_triton.docs.language import page

if __name__ == "__main__":
    print(page(), end="")
