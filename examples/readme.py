"""The two examples of the README, as they are printed there: a table, and features with public rows.

Run ``python examples/readme.py``. It keeps nothing: the ledger is in a folder that is removed at the end.
"""

import os
import re
import tempfile
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def examples() -> dict[str, str]:
    """The headings of the README that have code in Python, and that code."""
    text = README.read_text(encoding="utf-8")
    return dict(re.findall(r"^## ([^\n]+)\n\n```python\n(.*?)^```", text, flags=re.M | re.S))


def main() -> None:
    """Run each example in a folder of its own."""
    start = Path.cwd()
    for heading, code in examples().items():
        print(f"{heading}\n{'-' * len(heading)}\n\n{code}\nprints\n")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                exec(compile(code, str(README), "exec"), {"__name__": "__main__"})
            finally:
                os.chdir(start)
        print()


if __name__ == "__main__":
    main()
