"""How tests read files as the command line does."""

from tests.private_names import read_rows


def read_labelled(path, flag, label, labels, labels_flag, form, **how):
    """Rows with the labels of a column, or of a file."""
    columns = {} if label is None else {"--label-column": label}
    return read_rows(path, flag, columns, form, (labels_flag, labels), **how)


def read_unlabelled(path, where, left_aside, form, id_column=None, **how):
    """Rows without labels."""
    columns = dict(zip(("--label-column", "--group-column"), left_aside, strict=False))
    columns = {flag: name for flag, name in columns.items() if name is not None}
    named = {} if id_column is None else {"--id": id_column}
    return read_rows(path, where.partition(" ")[0], columns | named, form, optional=[*columns], **how)
