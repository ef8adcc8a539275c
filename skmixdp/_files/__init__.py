"""Rows in files and memory maps: readers of formats, and sources that map rows again in every pass."""

from .row_files import RowFiles, open_rows
from .streamed import StreamedRows, StreamedTable, table_of_map

__all__ = ["RowFiles", "StreamedRows", "StreamedTable", "open_rows", "table_of_map"]
