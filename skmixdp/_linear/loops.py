"""Clipped residuals and their sums in one pass over the rows, compiled by numba.

Rows are held column by column, and visited some at a time, so that they are still in cache when they are
needed again: first for their outputs, then for the sums. Loops run over entries that are next to each other
in memory, of which processors handle many at a time. There is no branch that depends on a row, so all rows
take the same time.

Importing this module compiles it for this processor, which takes some seconds, or loads the result of an
earlier process. All compiled code must be in this file: numba notices changes of no other file.
"""

import math

import numpy as np
from numba import float32, float64, int8, int64, njit, types, uint16

#: Entries of rows and outputs that are processed at a time; they fit most caches.
_ENTRIES = 2**17

#: Piecewise linear rows that are visited at a time.
_PIECE_ROWS = 1024
#: Most outputs that are computed one after the other.
_FEW_OUTPUTS = 6

#: Numbers in single precision: a plain one would make the loops compute in double precision.
_ZERO = np.float32(0)
_ONE = np.float32(1)
_INFINITY = np.float32(np.inf)
#: The smallest normal number.
_TINY = np.finfo(np.float32).tiny

#: Exponents are clipped to plus and minus this, so that exponentials and their inverses are normal numbers.
_FARTHEST = np.float32(81)

#: The logarithm of two, in two parts. Integer multiples of the first one are exact.
_LOG2_HIGH = np.float32(355 / 512)
_LOG2_LOW = np.float32(math.log(2) - 355 / 512)
_PER_LOG2 = np.float32(1 / math.log(2))
_HALF = np.float32(0.5)
#: The bits of the float32 number 2**n are those of the integer (n + bias), shifted left.
_BIAS = np.int32(127)
_SHIFT = np.int32(23)
#: Coefficients 1 / n! of the series of the exponential.
_C3 = np.float32(1 / math.factorial(3))
_C4 = np.float32(1 / math.factorial(4))
_C5 = np.float32(1 / math.factorial(5))
_C6 = np.float32(1 / math.factorial(6))
_C7 = np.float32(1 / math.factorial(7))

# The compiler may round a product together with the addition that follows, and reorder the terms of a panel.
_AS_WRITTEN = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
_ANY_ORDER = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}}


@njit(inline="always")
def _exp(x):
    """The exponential up to a few units in the last place, by a series for the remainder modulo log 2."""
    n = np.floor(x * _PER_LOG2 + _HALF)
    r = (x - n * _LOG2_HIGH) - n * _LOG2_LOW
    series = _ONE + r + r * r * (_HALF + r * (_C3 + r * (_C4 + r * (_C5 + r * (_C6 + r * _C7)))))
    power = np.int32((np.int32(n) + _BIAS) << _SHIFT)  # the bits of 2**n
    return series * power.view(np.float32)


@njit(**_AS_WRITTEN)
def _add_combination(z, w, a, b, c, d):
    """Add ``w_0 a + w_1 b + w_2 c + w_3 d`` to ``z``: the part of four columns in the outputs."""
    w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
    for i in range(len(z)):
        z[i] += w0 * a[i] + w1 * b[i] + w2 * c[i] + w3 * d[i]


@njit(**_AS_WRITTEN)
def _add_two_combinations(z, v, w, u, a, b, c, d):
    """As :func:`_add_combination`, for two vectors at a time, so that the columns are read only once."""
    w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
    u0, u1, u2, u3 = u[0], u[1], u[2], u[3]
    for i in range(len(z)):
        a_, b_, c_, d_ = a[i], b[i], c[i], d[i]
        z[i] += w0 * a_ + w1 * b_ + w2 * c_ + w3 * d_
        v[i] += u0 * a_ + u1 * b_ + u2 * c_ + u3 * d_


@njit(**_ANY_ORDER)
def _add_dots(r, a, b, c, d, total):
    """Add dot products of residuals ``r`` with four columns to ``total``."""
    s0 = s1 = s2 = s3 = _ZERO
    for i in range(len(r)):
        s0 += r[i] * a[i]
        s1 += r[i] * b[i]
        s2 += r[i] * c[i]
        s3 += r[i] * d[i]
    total[0] += s0
    total[1] += s1
    total[2] += s2
    total[3] += s3


@njit(**_ANY_ORDER)
def _add_two_dots(r, q, a, b, c, d, total, total_of_q):
    """As :func:`_add_dots`, for two vectors ``r`` and ``q``, so that the columns are read only once."""
    s0 = s1 = s2 = s3 = _ZERO
    t0 = t1 = t2 = t3 = _ZERO
    for i in range(len(r)):
        s0 += r[i] * a[i]
        s1 += r[i] * b[i]
        s2 += r[i] * c[i]
        s3 += r[i] * d[i]
        t0 += q[i] * a[i]
        t1 += q[i] * b[i]
        t2 += q[i] * c[i]
        t3 += q[i] * d[i]
    total[0] += s0
    total[1] += s1
    total[2] += s2
    total[3] += s3
    total_of_q[0] += t0
    total_of_q[1] += t1
    total_of_q[2] += t2
    total_of_q[3] += t3


@njit(**_AS_WRITTEN)
def _clip_logistic(z, y, lengths, within):
    """Turn outputs of class 1 into clipped residuals, in place."""
    for i in range(len(z)):
        # Comparisons with NaN are false, which avoids NaN as an exponent.
        far = -z[i] if -z[i] > -_FARTHEST else -_FARTHEST
        far = far if far < _FARTHEST else _FARTHEST
        r = _ONE / (_ONE + _exp(far)) - np.float32(y[i])
        bound = abs(r) * lengths[i]
        factor = within / bound if bound > within else _ONE
        usable = z[i] == z[i] and bound < _INFINITY and factor >= _TINY
        z[i] = r * factor if usable else _ZERO


@njit(**_AS_WRITTEN)
def _clip_softmax(Z, y, lengths, within, largest, total, derived):
    """Turn outputs (k, rows) into clipped residuals, in place; two arguments are buffers (rows,).

    The residual of the last class may be ``derived``: it is then minus the sum of the others.
    """
    k, n = Z.shape
    largest[:] = Z[0]
    total[:] = _ZERO
    for j in range(k):
        z = Z[j]
        for i in range(n):
            largest[i] = max(largest[i], z[i])
            total[i] += _ZERO * z[i]  # NaN if an output is not finite
    for j in range(k):
        z = Z[j]
        for i in range(n):
            below = z[i] - largest[i]
            z[i] = _exp(below if below > -_FARTHEST else -_FARTHEST)
            total[i] += z[i]
    squares = largest
    squares[:] = np.float32(2 * k * _TINY)  # no less than squares that underflow
    for i in range(n):
        total[i] = _ONE / total[i]
    for j in range(k - derived):
        z = Z[j]
        for i in range(n):
            z[i] = z[i] * total[i] - (_ONE if y[i] == j else _ZERO)
            squares[i] += z[i] * z[i]
    if derived:
        for i in range(n):
            last = _ZERO
            for j in range(k - 1):
                last -= Z[j, i]
            squares[i] += last * last
    factors = total
    for i in range(n):
        bound = np.sqrt(squares[i]) * lengths[i]
        factor = within / bound if bound > within else _ONE
        factors[i] = factor if bound < _INFINITY and factor >= _TINY else _ZERO
    for j in range(k):
        z = Z[j]
        for i in range(n):
            z[i] = z[i] * factors[i] if factors[i] > _ZERO else _ZERO


@njit(inline="always")
def _part(memory, start, n):
    """``n`` entries of the buffer from ``start`` on."""
    return memory[start : start + n]


@njit(nogil=True, error_model="numpy")
def _outputs(memory, stride, d_in, W, Z, first, n):
    """Add the products of ``n`` rows with the head to their outputs ``Z`` (m, n)."""
    m = len(W)
    for f in range(0, d_in, 4):
        # The weights of missing columns are zero, so that any column can take their place.
        a = _part(memory, f * stride + first, n)
        b = _part(memory, min(f + 1, d_in - 1) * stride + first, n)
        c = _part(memory, min(f + 2, d_in - 1) * stride + first, n)
        d = _part(memory, min(f + 3, d_in - 1) * stride + first, n)
        for j in range(0, m - 1, 2):
            _add_two_combinations(Z[j], Z[j + 1], W[j, f:], W[j + 1, f:], a, b, c, d)
        if m % 2:
            _add_combination(Z[m - 1], W[m - 1, f:], a, b, c, d)


@njit(nogil=True, error_model="numpy")
def _add_panel(memory, stride, d_in, Z, sums, first, p, q):
    """Add the products of residuals with the rows from ``p`` to ``q`` to the sums (m, width)."""
    m = len(Z)
    for f in range(0, d_in, 4):
        a = _part(memory, f * stride + first + p, q - p)
        b = _part(memory, min(f + 1, d_in - 1) * stride + first + p, q - p)
        c = _part(memory, min(f + 2, d_in - 1) * stride + first + p, q - p)
        d = _part(memory, min(f + 3, d_in - 1) * stride + first + p, q - p)
        for j in range(0, m - 1, 2):
            _add_two_dots(Z[j, p:q], Z[j + 1, p:q], a, b, c, d, sums[j, f:], sums[j + 1, f:])
        if m % 2:
            _add_dots(Z[m - 1, p:q], a, b, c, d, sums[m - 1, f:])


def _read_only(entry, n_dimensions=1):
    return types.Array(entry, n_dimensions, "C", readonly=True)


#: Types of arrays that the loops only read: float32 of one and of two dimensions, and float64.
_VECTOR = _read_only(float32)
_MATRIX = _read_only(float32, 2)
_VECTOR_OF_DOUBLES = _read_only(float64)


@njit(
    float64[:, ::1](
        *(_VECTOR, int64, int64, _read_only(int8), _VECTOR), *(_MATRIX, float32, int64, int64, int64)
    ),
    nogil=True,
    error_model="numpy",
    cache=True,
)
def clipped_sums(memory, stride, d_in, y, lengths, W, within, start, stop, panel):
    """``sum_i c_i x_i^T`` over rows from ``start`` to ``stop``, shape (m, width).

    ``memory`` is that of the rows, with ``stride`` entries from a column to the next. ``lengths`` (n_rows,)
    are upper bounds on the lengths of the rows; rows of infinite length contribute nothing. ``W`` (m, width)
    is the head, and one output is the logit of class 1. ``width`` is a multiple of four, with zeros after the
    ``d_in`` columns. Computed lengths of clipped gradients do not exceed ``within``. At most ``panel`` terms
    are added in single precision.
    """
    m, width = W.shape
    size = max(_ENTRIES // ((d_in + m) * panel), 1) * panel
    outputs, largest, total = np.empty(m * size, float32), np.empty(size, float32), np.empty(size, float32)
    sums = np.zeros((m, width))
    for first in range(start, stop, size):
        n = min(size, stop - first)
        labels, bounds = y[first : first + n], lengths[first : first + n]
        Z = outputs[: m * n].reshape(m, n)
        Z[:] = _ZERO
        _outputs(memory, stride, d_in, W, Z, first, n)
        if m == 1:
            _clip_logistic(Z[0], labels, bounds, within)
        else:
            _clip_softmax(Z, labels, bounds, within, largest[:n], total[:n], False)
        for p in range(0, n, panel):
            _add_panel(memory, stride, d_in, Z, sums, first, p, min(p + panel, n))
    return sums


@njit(float64[::1](_read_only(float32, 2), _VECTOR_OF_DOUBLES, float64), cache=True, **_AS_WRITTEN)
def shortening(C, norms, longest):
    """Factors (n_rows,) that shorten terms ``c_i x_i^T`` of residuals ``C`` (k, n_rows); 0 if infinite."""
    k, n = C.shape
    factors = np.zeros(n)
    for j in range(k):
        for i in range(n):
            factors[i] += float64(C[j, i]) * float64(C[j, i])
    for i in range(n):
        term = np.sqrt(factors[i]) * norms[i]
        factors[i] = longest / (term if term > longest else longest) if term < np.inf else 0.0
    return factors


@njit(
    float64[::1](
        *(_read_only(float32, 2), _read_only(float32, 2), _VECTOR_OF_DOUBLES),
        *(_read_only(int64), _read_only(int64), types.Array(float64, 3, "C")),
    ),
    cache=True,
    **_ANY_ORDER,
)
def mean_gradients(X, C, weights, place, first, out):
    """Write ``sum_i w_i c_i x_i^T`` of each person to ``out`` (n_persons, k, d_in); their lengths.

    The rows of person p are ``X[first[p]:first[p + 1]]``. Those of residuals ``C`` (k, n_places) and weights
    are at the places of the same numbers. A sum is formed in float64, row by row, and depends on those rows
    alone.
    """
    k, d_in = len(C), X.shape[1]
    lengths = np.empty(len(first) - 1)
    for p in range(len(lengths)):
        total = out[p]
        total[:] = 0.0
        for t in range(first[p], first[p + 1]):
            i = place[t]
            for j in range(k):
                # NaN has weight 0.
                c = weights[i] * float64(C[j, i]) if weights[i] > 0.0 else 0.0
                for f in range(d_in):
                    total[j, f] += c * float64(X[t, f])
        squares = 0.0
        for j in range(k):
            for f in range(d_in):
                squares += total[j, f] * total[j, f]
        lengths[p] = np.sqrt(squares)
    return lengths


@njit(**_AS_WRITTEN)
def _add_piece_outputs(places, parts, lines, of_vertices, of_lines, z):
    """Add the products of piecewise linear rows with one point to ``z``; see :func:`piece_products`."""
    for i in range(len(z)):
        total = 0.0
        for j in range(places.shape[1]):
            p, right = int64(places[i, j]), float64(parts[i, j])
            total += (1.0 - right) * of_vertices[p] + right * of_vertices[p + 1]
        for j in range(len(of_lines)):
            total += float64(lines[i, j]) * of_lines[j]
        z[i] += total


@njit(**_AS_WRITTEN)
def _add_two_piece_outputs(places, parts, lines, of_vertices, of_lines, z, q):
    """As :func:`_add_piece_outputs`, for two points, so that the pieces are read only once."""
    v, w, a, b = of_vertices[0], of_vertices[1], of_lines[0], of_lines[1]
    for i in range(len(z)):
        total = second = 0.0
        for j in range(places.shape[1]):
            p, right = int64(places[i, j]), float64(parts[i, j])
            left = 1.0 - right
            total += left * v[p] + right * v[p + 1]
            second += left * w[p] + right * w[p + 1]
        for j in range(len(a)):
            total += float64(lines[i, j]) * a[j]
            second += float64(lines[i, j]) * b[j]
        z[i] += total
        q[i] += second


@njit(**_AS_WRITTEN)
def _add_piece_weights(places, parts, lines, c, of_vertices, of_lines):
    """Add weights ``c`` of such rows to sums for vertices and for lines."""
    for i in range(len(c)):
        r = c[i]
        for j in range(places.shape[1]):
            p, right = int64(places[i, j]), float64(parts[i, j])
            of_vertices[p] += (1.0 - right) * r
            of_vertices[p + 1] += right * r
        for j in range(len(of_lines)):
            of_lines[j] += float64(lines[i, j]) * r


_PIECES = (_read_only(uint16, 2), _read_only(float32, 2), _read_only(float32, 2))
_MATRIX_OF_DOUBLES = _read_only(float64, 2)


@njit(float64[:, ::1](*_PIECES, _MATRIX_OF_DOUBLES, _MATRIX_OF_DOUBLES), cache=True, **_AS_WRITTEN)
def piece_products(places, parts, lines, of_vertices, of_lines):
    """Products (n_rows, m) in float64 of piecewise linear rows with points, row by row.

    Row i is ``1 - parts[i, j]`` times the vertex ``places[i, j]`` plus ``parts[i, j]`` times the next one,
    over all curves j, and has entries ``lines[i]``. ``of_vertices`` (m, n_vertices) are products of
    points with vertices, and ``of_lines`` (m, n_lines) the points' entries for lines.
    """
    n, (m, n_lines) = len(places), of_lines.shape
    Z = np.zeros((n, m))
    if m <= _FEW_OUTPUTS:
        for begin in range(0, n, _PIECE_ROWS):
            rows = slice(begin, min(begin + _PIECE_ROWS, n))
            x = places[rows], parts[rows], lines[rows]
            for k in range(m):
                _add_piece_outputs(*x, of_vertices[k], of_lines[k], Z[rows, k])
        return Z
    of_vertices, of_lines = of_vertices.T.copy(), of_lines.T.copy()
    for i in range(n):
        z = Z[i]
        for j in range(places.shape[1]):
            p, right = int64(places[i, j]), float64(parts[i, j])
            a, b, left = of_vertices[p], of_vertices[p + 1], 1.0 - right
            for k in range(m):
                z[k] += left * a[k] + right * b[k]
        for j in range(n_lines):
            a, line = of_lines[j], float64(lines[i, j])
            for k in range(m):
                z[k] += line * a[k]
    return Z


@njit(types.none(*_PIECES, _MATRIX_OF_DOUBLES, float64[:, ::1], float64[:, ::1]), cache=True, **_AS_WRITTEN)
def add_piece_sums(places, parts, lines, C, of_vertices, of_lines):
    """Add weights ``C`` (n_rows, m) of such rows, row by row, to sums for vertices and for lines."""
    n, (m, n_lines) = len(places), of_lines.shape
    if m <= _FEW_OUTPUTS:
        for begin in range(0, n, _PIECE_ROWS):
            rows = slice(begin, min(begin + _PIECE_ROWS, n))
            x = places[rows], parts[rows], lines[rows]
            for k in range(m):
                _add_piece_weights(*x, C[rows, k].copy(), of_vertices[k], of_lines[k])
        return
    by_vertex, by_line = of_vertices.T.copy(), of_lines.T.copy()
    for i in range(n):
        r = C[i]
        for j in range(places.shape[1]):
            p, right = int64(places[i, j]), float64(parts[i, j])
            a, b, left = by_vertex[p], by_vertex[p + 1], 1.0 - right
            for k in range(m):
                a[k] += left * r[k]
                b[k] += right * r[k]
        for j in range(n_lines):
            a, line = by_line[j], float64(lines[i, j])
            for k in range(m):
                a[k] += line * r[k]
    of_vertices[:] = by_vertex.T
    of_lines[:] = by_line.T


@njit(
    float64[:, ::1](
        *(*_PIECES, _MATRIX_OF_DOUBLES, _MATRIX_OF_DOUBLES, _VECTOR_OF_DOUBLES, _VECTOR_OF_DOUBLES),
        *(_VECTOR_OF_DOUBLES, _read_only(int8), _VECTOR, float32),
    ),
    cache=True,
    **_AS_WRITTEN,
)
def clipped_piece_sums(
    places, parts, lines, of_vertices, of_lines, offsets, constants, factors, y, lengths, within
):
    """Sums (m, n_vertices + n_lines + 2) of such rows, weighted by their clipped residuals ``c_i``.

    The outputs of row i are ``f_i (x_i^T w + offset) + constant``, with offsets and constants (m,) and
    factors ``f`` (n_rows,). The last two columns are sums of ``c_i f_i`` and ``c_i``, and the others those of
    ``c_i f_i`` for vertices and lines. Other arguments are those of :func:`clipped_sums`. Of several classes,
    outputs are less those of the last one, and the sums of the last one are minus those of the others.
    """
    (m, n_vertices), n_lines = of_vertices.shape, of_lines.shape[1]
    sums, k = np.zeros((m, n_vertices + n_lines + 2)), max(m - 1, 1)
    if m > 1:
        of_vertices, of_lines = of_vertices[:k] - of_vertices[k], of_lines[:k] - of_lines[k]
        offsets, constants = offsets[:k] - offsets[k], constants[:k] - constants[k]
    c, outputs, memory = (
        np.empty((k + 1, _PIECE_ROWS)),
        np.empty(m * _PIECE_ROWS, float32),
        np.empty((2, _PIECE_ROWS), float32),
    )
    for begin in range(0, len(places), _PIECE_ROWS):
        n = min(_PIECE_ROWS, len(places) - begin)
        rows = slice(begin, begin + n)
        x, f, weights, Z = (
            (places[rows], parts[rows], lines[rows]),
            factors[rows],
            c[:, :n],
            outputs[: m * n].reshape(m, n),
        )
        for j in range(0, k, 2):
            weights[j], weights[j + 1] = offsets[j], offsets[min(j + 1, k - 1)]
            if j + 1 < k:
                _add_two_piece_outputs(*x, of_vertices[j:], of_lines[j:], weights[j], weights[j + 1])
            else:
                _add_piece_outputs(*x, of_vertices[j], of_lines[j], weights[j])
        Z[:] = _ZERO  # of several classes, the last one has outputs of zero
        for j in range(k):
            for i in range(n):
                Z[j, i] = f[i] * weights[j, i] + constants[j]
        if m == 1:
            _clip_logistic(Z[0], y[rows], lengths[rows], within)
        else:
            _clip_softmax(Z, y[rows], lengths[rows], within, memory[0, :n], memory[1, :n], True)
        for j in range(k):
            total, weighted = sums[j], weights[j]
            for i in range(n):
                weighted[i] = f[i] * float64(Z[j, i])
                total[n_vertices + n_lines + 1] += float64(Z[j, i])
                total[n_vertices + n_lines] += weighted[i]
            _add_piece_weights(*x, weighted, total[:n_vertices], total[n_vertices : n_vertices + n_lines])
    for j in range(m - 1):
        sums[k] -= sums[j]
    return sums
