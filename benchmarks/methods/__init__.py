"""One module for each method that is measured.

A module has one function, ``cases(problem)``, which returns the list of its
:class:`~benchmarks.measure.Case` for a problem. To add a peer, write its module and name it in
``config.yaml``.
"""
