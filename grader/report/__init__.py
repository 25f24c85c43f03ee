"""What grading found, for people and for Gradescope.

terminal     tables in a terminal, plain text in a pipe
html         one self-contained page
gradescope   results.json, checked against `results.schema.json`
"""
