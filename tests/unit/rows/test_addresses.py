"""Rows in object stores: addresses, patterns and folders, read by ranges of bytes."""

import re
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd
import pytest

from skmixdp import MixedDPLogisticRegression
from skmixdp.datasets import open_rows

pytest.importorskip("pyarrow", reason="needs skmixdp[storage]")
fsspec = pytest.importorskip("fsspec", reason="needs skmixdp[storage]")

rng = np.random.default_rng(0)
X, X_PUB = rng.normal(size=(600, 4)), rng.normal(size=(60, 4))
Y, Y_PUB = np.arange(600) % 2, np.arange(60) % 2
NAMES = ["a", "b", "c", "d"]


class Store(BaseHTTPRequestHandler):
    """The few requests of S3 that readers make: sizes, ranges and lists of objects of a folder."""

    protocol_version = "HTTP/1.1"

    def __init__(self, root, sent, *arguments):
        self.root, self.sent = root, sent
        super().__init__(*arguments)

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        url = urlsplit(self.path)
        path, query = self.root / unquote(url.path).strip("/"), parse_qs(url.query)
        if "prefix" in query or "list-type" in query:
            return self.answer(200, self.listed(path, query).encode(), "application/xml")
        if not path.is_file():
            code = b"<Error><Code>NoSuchKey</Code><Message>none</Message></Error>"
            bucket = url.path.strip("/").count("/") == 0 and path.is_dir()
            return self.answer(200 if bucket else 404, b"" if bucket else code, "application/xml")
        content, total = path.read_bytes(), path.stat().st_size
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if span is None:
            return self.answer(200, content)
        start, stop = int(span[1]), min(int(span[2]), total - 1) + 1
        return self.answer(206, content[start:stop], span=f"bytes {start}-{stop - 1}/{total}")

    def listed(self, bucket, query):
        prefix, parts = query.get("prefix", [""])[0], []
        keys = sorted(str(path.relative_to(bucket)) for path in bucket.rglob("*") if path.is_file())
        keys, folders = [key for key in keys if key.startswith(prefix)], set()
        for key in keys:
            rest = key[len(prefix) :]
            if "delimiter" in query and "/" in rest:
                folders.add(prefix + rest.partition("/")[0] + "/")
            else:
                size = (bucket / key).stat().st_size
                date = "<LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                parts.append(f"<Contents><Key>{escape(key)}</Key>{date}<Size>{size}</Size></Contents>")
        parts += [f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in sorted(folders)]
        count = f"<KeyCount>{len(parts)}</KeyCount><IsTruncated>false</IsTruncated>"
        return f"<ListBucketResult><Name>b</Name>{count}{''.join(parts)}</ListBucketResult>"

    def answer(self, status, content, kind="binary/octet-stream", span=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.send_header("ETag", '"0"')
        if span:
            self.send_header("Content-Range", span)
        self.end_headers()
        if self.command == "GET":
            self.sent.append(len(content))
            self.wfile.write(content)


@pytest.fixture
def s3(tmp_path, monkeypatch):
    """A local store: its folder, how to address it, and the sizes of what it sent."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "testing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    root, sent = tmp_path / "store", []
    (root / "bucket").mkdir(parents=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Store, root, sent))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    settings = f"?endpoint_override=127.0.0.1:{server.server_port}&scheme=http&region=us-east-1"
    yield root / "bucket", lambda path: f"s3://bucket/{path}{settings}", sent
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def memory(tmp_path):
    """The same for ``memory://``: what is written to the folder is copied when it is addressed."""
    files = fsspec.filesystem("memory")
    folder = tmp_path / "memory"
    folder.mkdir()

    def address(path):
        for file in folder.rglob("*"):
            if file.is_file():
                target = f"/bucket/{file.relative_to(folder)}"
                files.makedirs(target.rpartition("/")[0], exist_ok=True)
                files.pipe(target, file.read_bytes())
        return f"memory://bucket/{path}"

    yield folder, address, []
    files.store.clear()
    files.pseudo_dirs[:] = [""]


@pytest.fixture
def local(tmp_path):
    return tmp_path, lambda path: f"file://{tmp_path}/{path}", []


@pytest.fixture(params=["s3", "memory", "local"])
def store(request):
    return request.getfixturevalue(request.param)


def written(folder, suffix, rows=slice(None)):
    """A file of rows, with labels in the column or array ``y``; of .npy without labels."""
    path = folder / f"rows{suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(X[rows], columns=NAMES).assign(y=Y[rows])
    if suffix == ".npy":
        np.save(path, X[rows])
    elif suffix == ".npz":
        np.savez(path, X=X[rows], y=Y[rows])
    elif suffix == ".parquet":
        frame.to_parquet(path, row_group_size=200, index=False)
    elif suffix == ".arrow":
        frame.to_feather(path)
    else:
        frame.to_csv(path, index=False)
    return path


def read(rows):
    return np.concatenate(list(rows.blocks()))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".npy", ".npz", ".csv", ".csv.gz", ".csv.xz"])
def test_all_formats_are_read_from_all_stores(store, suffix):
    folder, address, _ = store
    written(folder, suffix)
    rows = open_rows(address(f"rows{suffix}"), label=None if suffix[:3] == ".np" else "y")
    np.testing.assert_array_equal(read(rows), X)
    if suffix != ".npy":
        np.testing.assert_array_equal(rows.labels, Y)


def test_patterns_and_folders_are_read_in_the_order_of_names(store):
    folder, address, _ = store
    parts = [slice(0, 250), slice(250, 300), slice(300, 600)]
    for number, part in enumerate(parts):
        written(folder / f"year={2020 + number}", ".parquet", part)
    (folder / "year=2020" / "_SUCCESS").write_bytes(b"")
    options = {"label": "y", "columns": NAMES}
    for path in ("year=*/rows.parquet", "year=202?/*.parquet", "year=*", ""):
        np.testing.assert_array_equal(read(open_rows(address(path), **options)), X)
    dated = open_rows(address(""), label="y")
    assert dated.names == [*NAMES, "year"]
    several = open_rows([address("year=2020"), address("year=2022/rows.parquet")], **options)
    np.testing.assert_array_equal(read(several), X[[*range(250), *range(300, 600)]])


def test_a_local_pattern_is_a_pattern_unless_a_file_has_this_name(tmp_path):
    for name in ("part1", "part[1]"):
        written(tmp_path / name, ".npy", slice(0, 9))
    assert len(open_rows(tmp_path / "part[1]")) == 9  # the folder of this name
    assert len(open_rows(str(tmp_path / "part*" / "*.npy"))) == 18


def test_a_fit_of_rows_in_a_store_is_that_of_rows_in_memory(store):
    folder, address, _ = store
    written(folder, ".parquet")

    def fit(rows, y=None):
        head = MixedDPLogisticRegression("adamix", epsilon=2.0, random_state=0)
        return head.fit(rows, y, X_pub=pd.DataFrame(X_PUB, columns=NAMES), y_pub=Y_PUB)

    stored = fit(open_rows(address("rows.parquet"), label="y"))
    np.testing.assert_array_equal(stored.coef_, fit(pd.DataFrame(X, columns=NAMES), Y).coef_)


def test_only_the_ranges_of_the_columns_are_fetched(s3):
    folder, address, sent = s3
    frame = pd.DataFrame(rng.normal(size=(100_000, 10)), columns=list("abcdefghij"))
    frame.to_parquet(folder / "wide.parquet", row_group_size=50_000, compression=None)
    rows = open_rows(address("wide.parquet"), columns=["a", "b"])
    assert sum(sent) < 2**17  # the footer
    np.testing.assert_array_equal(read(rows), frame[["a", "b"]])
    assert sum(sent) < 0.25 * (folder / "wide.parquet").stat().st_size


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://example.org/rows.parquet", "begins with http://, and open_rows reads paths, s3://, gs://"),
        ("az://bucket/rows.parquet", "begins with az://, and open_rows reads paths, s3://, gs://, memory://"),
        ("S4://bucket/rows.parquet", "begins with S4://"),
        ("s3://", "is no address that pyarrow reads; write it as s3://bucket/folder/file"),
        ("s3://b/rows.parquet?nothing=1", "is no address that pyarrow reads"),
        ("s3://b/rows.parquet?endpoint_override=127.0.0.1:9&scheme=http", "cannot be reached in its store"),
        ("memory://nothing/*.parquet", "has no .*; name another folder"),
        ("memory://nothing/rows.parquet", "rows.parquet is not in the store; check the address"),
        ("memory://nothing/rows.txt", "must end in one of"),
        ("file:///nothing/rows.parquet", "No such file or directory"),
    ],
)
def test_addresses_that_are_not_read_are_refused_in_a_sentence(address, said):
    with pytest.raises(ValueError, match=said) as caught:
        open_rows(address)
    assert "\n" not in str(caught.value)


def test_objects_that_are_absent_damaged_or_gone_are_refused(s3):
    folder, address, _ = s3
    path = written(folder, ".parquet")
    with pytest.raises(ValueError, match=r"none\.parquet is not in the store; check"):
        open_rows(address("none.parquet"))
    rows = open_rows(address("rows.parquet"), label="y")
    path.unlink()
    with pytest.raises(ValueError, match=r"rows\.parquet \(row group 0\) cannot be read"):
        read(rows)
    path.write_bytes(b"PAR1" + bytes(100))
    with pytest.raises(ValueError, match=r"rows\.parquet cannot be read"):
        open_rows(address("rows.parquet"))
