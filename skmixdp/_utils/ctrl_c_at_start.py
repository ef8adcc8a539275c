"""While the command line starts, Ctrl-C ends it without a traceback. This is imported first of all."""

import signal
import sys
from pathlib import Path

#: The command that started the interpreter: ``python -m skmixdp ...``, or the script ``skmixdp``.
_words = sys.orig_argv[1:]
_is_module = "-m" in _words and _words[_words.index("-m") + 1 :][:1] == ["skmixdp"]
_is_script = bool(_words) and Path(_words[0]).stem == "skmixdp"

if (_is_module or _is_script) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
