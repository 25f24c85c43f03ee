"""TTIR text → a small typed IR: `types`, `lexer`, `parser`, `program`."""
