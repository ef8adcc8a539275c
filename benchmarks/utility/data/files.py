"""Where the files of real data lie."""

import os
from pathlib import Path


def data_folder(name: str) -> Path:
    """Folder of a data set below ``SKMIXDP_DATA``, or below ``shared/data`` beside the checkout.

    Raises
    ------
    FileNotFoundError
        If it is not there.
    """
    folder = Path(os.environ.get("SKMIXDP_DATA", Path(__file__).parents[4] / "shared" / "data"))
    if not (folder / name).is_dir():
        raise FileNotFoundError(f"no {name} in {folder}; set SKMIXDP_DATA to the folder that holds it.")
    return folder / name
