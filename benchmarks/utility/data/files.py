"""Where the files of real data lie."""

from pathlib import Path

from benchmarks.reproduce import adamix_ablation


def data_folder(name: str) -> Path:
    """Folder of a data set below ``SKMIXDP_DATA``, or below ``shared/data`` next to the checkout.

    Raises
    ------
    FileNotFoundError
        If it is not there.
    """
    folder = adamix_ablation.data_folder()
    if not (folder / name).is_dir():
        raise FileNotFoundError(f"no {name} in {folder}; set SKMIXDP_DATA to the folder that holds it.")
    return folder / name
