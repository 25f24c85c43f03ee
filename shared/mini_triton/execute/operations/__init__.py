"""Operations on tiles, each registered under its name in TTIR."""
