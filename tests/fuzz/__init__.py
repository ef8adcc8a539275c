"""Hostile input for everything that reads rows, parameters, names or files: ``make fuzz``.

A test draws one hostile case and checks the outcome: a documented error, or a right result. The README in
this folder lists the tests, the cases that were run, and what they found.
"""
