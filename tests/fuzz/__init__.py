"""Hostile input for everything that reads rows, parameters, names or files: ``python -m tests.fuzz``.

A *target* draws one hostile case and checks what came of it: a documented error, or a right result. The
README in this folder lists the targets, the cases that were run, and what they found.
"""
