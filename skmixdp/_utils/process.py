"""What a fit sets in its process: errors that leave it, late warnings, threads of its passes, progress bars.

NumPy lets other threads run while it computes. So as many threads as BLAS may use visit parts of the rows,
and each of them multiplies with one thread. The work between products is then shared too. No thread waits for
others inside a product, which takes long if other programs use the processor.
"""

import dis
import operator
import os
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import cache, lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from traceback import walk_tb
from types import FrameType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits


@contextmanager
def own_state() -> Iterator[None]:
    """A context or decorator in which every public function and method reads private rows.

    NumPy and SciPy raise no errors and warnings of numbers in it: with settings of the user, one private
    entry could end a fit, or warn of itself. Only errors of :func:`own_errors` leave it.
    """
    silent: dict[str, Any] = {"all": "ignore"}
    with np.errstate(**silent), special.errstate(**silent), own_errors():
        yield


@contextmanager
def own_errors() -> Iterator[None]:
    """A context or decorator that only errors leave that this package wrote.

    They replace those of other libraries, which may quote private cells in class, text, notes or cause.
    """
    try:
        yield
    except BaseException as error:
        own = _own_form(error)
        try:
            raise own
        except BaseException:
            # Not earlier, since ``raise`` sets the context.
            own.__cause__ = own.__context__ = None
            raise


@contextmanager
def public_code() -> Iterator[None]:
    """A context of code that sees parameters, names, public rows and released numbers alone.

    Its errors leave :func:`own_errors` as they are, such as those of callbacks and ledgers.
    """
    try:
        yield
    except Exception as error:
        setattr(error, _PASSES, True)
        raise


#: What messages say in place of an error of another library or of a user's code.
LEFT_OUT = "an error that is left out, since its class and text may quote rows"

#: Attribute of errors that have passed a guard; unlike a traceback, it comes back from other processes.
_PASSES = "_passes_own_state"
_PACKAGE = __name__.partition(".")[0]
_RAISE = dis.opmap["RAISE_VARARGS"]
#: Functions of scikit-learn whose errors tell names and numbers of features, and classes of estimators alone.
_OF_NAMES = {
    *("check_is_fitted", "_check_feature_names", "_check_n_features", "_get_feature_names"),
    "_num_features",
}


class _OwnNote(str):
    """A note that this package wrote, so that it may leave :func:`own_errors`."""


def add_note(error: BaseException, text: str) -> None:
    """Add a note to an error that :func:`own_errors` keeps."""
    error.add_note(_OwnNote(text))


def is_own(error: BaseException) -> bool:
    """Whether this package wrote an error: a ``raise`` of its own made it, or it is a warning of its own.

    An error of a function in C has no frame below that of its caller, whose instruction is then a call.
    """
    library = type(error).__module__.partition(".")[0]
    if library == _PACKAGE or _PASSES in vars(error):
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    code, module = trace.tb_frame.f_code, _module_of(trace.tb_frame)
    raised = code.co_code[trace.tb_lasti] == _RAISE
    if module == "sklearn.utils.validation":
        return raised and code.co_name in _OF_NAMES
    if module == "contextlib" and code.co_name == "inner":  # a decorated function has no such argument
        return True
    # A warning that a filter has made an error comes from a call.
    return _is_of_package(trace.tb_frame) and (
        type(error) is UserWarning or (raised and library == "builtins")
    )


def place_of(error: BaseException) -> str:
    """The innermost line of this package in the traceback of an error."""
    lines = [(_module_of(frame), n) for frame, n in walk_tb(error.__traceback__) if _is_of_package(frame)]
    return "line {1} of {0}".format(*lines[-1]) if lines else _PACKAGE


def name_of(error: BaseException) -> str:
    """The class of the error that leaves :func:`own_errors` in place of an error."""
    return type(_own_form(error)).__name__


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _is_of_package(frame: FrameType) -> bool:
    return _module_of(frame).partition(".")[0] == _PACKAGE


def _own_form(error: BaseException) -> BaseException:
    """The error itself, if it may leave :func:`own_state`, or one that tells its kind alone."""
    passes = isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit) or is_own(error)
    if passes or (type(error) is MemoryError and not error.args):
        notes = vars(error).pop("__notes__", [])
        for text in notes:
            if isinstance(text, _OwnNote):
                error.add_note(text)
        setattr(error, _PASSES, True)
        return error
    if isinstance(error, MemoryError):
        return MemoryError("the memory is full; pass fewer rows or columns, or rows in files.")
    if isinstance(error, OSError) and error.errno is not None:
        return OSError(error.errno, os.strerror(error.errno))
    return ValueError(
        f"{place_of(error)} met {LEFT_OUT}; check that each column holds numbers, texts or dates of one "
        "kind, and try the same call on public rows."
    )


def finite(numbers: NDArray[Any], *, nan: float = 0.0) -> NDArray[Any]:
    """Finite results of finite numbers, changed in place: overflow becomes the largest number of the type."""
    largest = np.finfo(numbers.dtype).max
    np.clip(numbers, -largest, largest, out=numbers)  # takes half the time of np.nan_to_num
    np.copyto(numbers, nan, where=np.isnan(numbers))  # such as the difference of two that overflowed
    return numbers


#: The warnings of the fit in this context; None outside of fits.
_late_warnings: ContextVar[list[str] | None] = ContextVar("_late_warnings", default=None)

#: Packages whose frames lie between the line of a user and that of a warning.
_BETWEEN = (
    *(_PACKAGE, "sklearn", "joblib", "contextlib", "numpy", "functools", "copy", "concurrent"),
    *("threading", "runpy"),
)


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user: the innermost one outside of this package and of scikit-learn."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _module_of(frame).partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def warn_later(message: str) -> None:
    """Warn when the fit in this context has its results, which a warning that is an error then leaves."""
    late = _late_warnings.get()
    if late is None:
        warn(message)
    else:
        late.append(message)


@contextmanager
def late_warnings() -> Iterator[list[str]]:
    """A context in which :func:`warn_later` fills the list that it gives."""
    late: list[str] = []
    token = _late_warnings.set(late)
    try:
        yield late
    finally:
        _late_warnings.reset(token)


# -- threads ----------------------------------------------------------------------------

#: Most parts of a pass, and so most threads. Each part adds one rounding to a sum.
_MOST_PARTS = 8

#: Parts for each thread, so that other threads take over the work of a slow one.
_PARTS = 2

_Result = TypeVar("_Result")

#: The pool of threads that help the calling thread, and their number.
_helpers: ContextVar[tuple[ThreadPoolExecutor, int] | None] = ContextVar("_helpers", default=None)

#: Number of parts for a pass over the rows; 1 where :func:`in_parallel` has no threads.
n_parts: ContextVar[int] = ContextVar("n_parts", default=1)

#: Lock for setting numbers of threads.
_setting = threading.Lock()


@contextmanager
def worker_session() -> Iterator[None]:
    """A context that gives :func:`in_parallel` the threads that BLAS may use, and leaves one to BLAS."""
    n_threads = 1 if _helpers.get() is not None else min(_allowed_threads(), _MOST_PARTS)
    if n_threads < 2:
        yield
        return
    # BLAS already has one thread; the number of threads of OpenMP belongs to the calling thread.
    one_each = partial(threadpool_limits, limits=1, user_api="openmp")
    with one_thread(), ThreadPoolExecutor(n_threads - 1, initializer=one_each) as pool:
        tokens = _helpers.set((pool, n_threads - 1)), n_parts.set(min(_PARTS * n_threads, _MOST_PARTS))
        try:
            yield
        finally:
            _helpers.reset(tokens[0])
            n_parts.reset(tokens[1])


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which BLAS and OpenMP have one thread, for small work.

    Threads of one library wait for its next product by spinning, while those of another one compute. Small
    work then takes several times as long.
    """
    pools = pools_of(len(sys.modules))
    # Numbers of threads are read and set under a lock, so that no temporary number of another thread is
    # restored.
    with _setting:
        any_more = any(library["num_threads"] > 1 for library in pools.info())
        limit: AbstractContextManager[object] = pools.limit(limits=1) if any_more else nullcontext()
    with limit:
        yield


@lru_cache(maxsize=1)
def pools_of(n_modules: int) -> ThreadpoolController:
    """The libraries with threads, searched again after imports only: it takes as long as a small fit."""
    return ThreadpoolController()


def in_parallel(tasks: Sequence[Callable[[], _Result]]) -> list[_Result]:
    """The results of all tasks, in order, each in a copy of the caller's context.

    The calling thread takes tasks as the others do. So it need not wait for another one to wake up.
    """
    helpers = _helpers.get()
    if helpers is None or len(tasks) < 2:
        return list(map(operator.call, tasks))
    pool, n_helpers = helpers
    waiting = deque(enumerate(tasks))
    results: dict[int, _Result] = {}

    def work() -> None:
        """Take tasks until none is left. Tasks get no threads of their own, so that none waits for itself."""
        _helpers.set(None)
        n_parts.set(1)
        while True:
            try:
                index, task = waiting.popleft()
            except IndexError:
                return
            try:
                results[index] = copy_context().run(task)
            except BaseException:
                waiting.clear()
                raise

    helping = [pool.submit(copy_context().run, work) for _ in range(min(n_helpers, len(tasks) - 1))]
    try:
        copy_context().run(work)
    finally:
        begun = [each for each in helping if not each.cancel()]
        wait(begun)
    for each in begun:
        each.result()
    return [results[index] for index in range(len(tasks))]


def _allowed_threads() -> int:
    """Number of threads for BLAS, at most one for each processor; 1 where it cannot be set."""
    blas = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    affinity = getattr(os, "sched_getaffinity", None)
    processors = (os.cpu_count() or 1) if affinity is None else len(affinity(0))
    return min([processors, *blas]) if blas else 1


# -- progress bars ----------------------------------------------------------------------

#: Seconds after which a bar appears on a terminal.
_PATIENCE = 2.0

_hidden: ContextVar[bool] = ContextVar("_hidden", default=False)


def progress_bar(
    items: Iterable[Any] | None = None, *, verbose: object, hidden: str | None = None, **options: object
) -> Any:
    """A bar of ``tqdm`` with its ``options``; without ``items``, the caller updates it.

    With ``verbose``, it is shown at once and everywhere. Otherwise it appears on terminals after 2 seconds
    and goes away at the end, except within :func:`no_bars`. ``hidden`` is a line to show in its place. Where
    nobody would see a bar, the result is ``items``, or None.
    """
    # In a notebook, bars of tqdm are not output of a terminal.
    seen = verbose or (not _hidden.get() and (sys.stderr.isatty() or "ipykernel" in sys.modules))
    if hidden and seen:
        sys.stderr.write(f"{hidden}\n")
    if hidden is not None or not seen:
        # Hidden bars are not made by tqdm: its lock is shared by forked processes, and if one of them is
        # killed while it holds the lock, all others wait forever.
        return items
    if not verbose:
        options |= {"delay": _PATIENCE, "leave": False}
    # Each update looks at the clock, so no thread has to watch for bars that stand still.
    return _bar_class()(items, miniters=1, **options)


@cache
def _bar_class() -> Any:
    """The class of tqdm's bars, with a lock for this process alone, and without a thread."""
    # Imported only where a bar may appear, since it takes time. Bars of notebooks need widgets, and
    # without them tqdm.auto warns and uses plain bars.
    bars = import_module("tqdm.auto" if find_spec("ipywidgets") else "tqdm").tqdm
    return type("Bar", (bars,), {"_lock": threading.RLock(), "monitor_interval": 0})


@contextmanager
def no_bars() -> Iterator[None]:
    """A context in which no bar appears by itself, since bars would count fits whose number is secret."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)
