"""Mutation testing of what the guarantee rests on: small faults are planted, and tests must fail."""
