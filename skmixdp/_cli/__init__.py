"""Parts of the command line: one module per command, and what they share.

A command module has ``add_to(commands)``, which declares its arguments, and ``run(args)``.
``files`` opens files, ``rows`` checks what is in them, ``outputs`` writes results all or none,
``messages`` holds the form of errors and warnings.
"""
