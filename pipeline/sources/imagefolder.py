"""Images in folders: train/, select/, test/, each with a subfolder per class."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import InputError
from pipeline.sources.augment import AUGMENTATIONS
from pipeline.sources.prepare import Preparation, preparation
from pipeline.sources.stratify import stratified

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    Arrays = dict[str, np.ndarray]

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".ppm", ".pgm"})
KEYS = frozenset({"size", "channels", "mean", "std", "interpolation", "crop_share", "augment", "select_share", "seed", "workers"})


class ImageSplit:
    """Image files that are read when they are asked for.

    Args:
        folder: Of the split; its name is what a slices CSV calls the split of these samples.
        names: Paths below it.
        labels: Class numbers [n].
        classes: Their names.
        prepare: How images become inputs.
        head: Name of the target.
        input_name: Name of the input.
        augment: Key of `AUGMENTATIONS`, for `augmented`.
        workers: Threads that decode (Pillow works outside Python's lock).
    """

    reads_ahead = True
    """Nothing here draws from global generators: training may read the next batch while it computes."""

    def __init__(
        self,
        folder: Path,
        names: list[str],
        labels: np.ndarray,
        classes: list[str],
        prepare: Preparation,
        *,
        head: str = "label",
        input_name: str = "x",
        augment: str = "none",
        workers: int = 4,
    ) -> None:
        self.folder, self.names, self.home = folder, names, folder.name
        self._labels, self._classes, self._prepare = labels, classes, prepare
        self._head, self._input, self._changes, self._workers = head, input_name, AUGMENTATIONS[augment], workers

    def __len__(self) -> int:
        return len(self.names)

    def batch(self, index: np.ndarray) -> tuple[Arrays, Arrays]:
        """Inputs float32 [n, channels, height, width] and class numbers [n] of the given sample numbers."""
        return self._read(index, [None] * len(index))

    def augmented(self, index: np.ndarray, rng: np.random.Generator) -> tuple[Arrays, Arrays]:
        """Like `batch`, with random changes: each image has its own generator, so that threads change nothing."""
        return self._read(index, list(rng.spawn(len(index))) if self._changes else [None] * len(index))

    def slices(self) -> Mapping[str, np.ndarray]:
        """The class of every sample, by its folder's name."""
        import numpy as np

        return {"class": np.asarray(self._classes)[self._labels]}

    def _read(self, index: np.ndarray, generators: list[np.random.Generator | None]) -> tuple[Arrays, Arrays]:
        import numpy as np

        with ThreadPoolExecutor(self._workers) as pool:
            images = list(pool.map(self._one, index.tolist(), generators))
        return {self._input: np.stack(images)}, {self._head: self._labels[index]}

    def _one(self, number: int, rng: np.random.Generator | None) -> np.ndarray:
        image = self._prepare.mode(read_image(self.folder / self.names[number]))
        if rng is None:
            return self._prepare.evaluate(image)
        for change in self._changes:
            image = change(image, self._prepare, rng)
        return self._prepare.array(image)


def read_image(path: Path) -> Image:
    """Decode an image file.

    Raises:
        InputError: no image, a damaged one, or one of a size that only an attack has.
    """
    from PIL import Image

    try:
        with Image.open(path) as image:
            image.load()
            return image.copy()
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise InputError(f"cannot read the image ({error})", where=str(path), hint="repair or remove the file") from None


def splits(section: Mapping[str, Any], base: Path, args: Mapping[str, Any], model: Mapping[str, Any] | None) -> tuple[ImageSplit, ...]:
    """Train, select and test of an image folder.

    test/ is the test split, else val/. select/ is the select split, else val/ where test/ is there, else a share of train/.

    Args:
        section: The recipe's data section.
        base: Folder of the recipe.
        args: The keys `KEYS`.
        model: The recipe's model section, for its preparation.
    """
    unknown = sorted(set(args) - KEYS)
    if unknown:
        raise InputError(
            f"imagefolder has no argument {unknown[0]!r}", where="data.args", hint=f"its arguments are {', '.join(sorted(KEYS))}"
        )
    augment = str(args.get("augment", "none"))
    if augment not in AUGMENTATIONS:
        raise InputError(f"no augmentation {augment!r}", where="data.args.augment", hint=f"one of {', '.join(AUGMENTATIONS)}")
    root = base / section["imagefolder"]
    train, test = root / "train", next((root / name for name in ("test", "val") if (root / name).is_dir()), root / "test")
    select = next((path for path in (root / "select", root / "val") if path.is_dir() and path != test), None)
    classes = _classes(train)
    head, name = next(iter(section.get("heads") or {"label": "accuracy"})), next(iter((model or {}).get("inputs") or ["x"]))
    how = {"prepare": preparation(model, args), "head": head, "input_name": name, "workers": int(args.get("workers", 4))}

    names, labels = _listing(train, classes)
    parts = _parted(labels, float(args.get("select_share", 0.1)), int(args.get("seed", 0))) if select is None else None
    if parts is not None:
        kept, held = parts
        return (
            ImageSplit(train, [names[i] for i in kept], labels[kept], classes, augment=augment, **how),
            ImageSplit(train, [names[i] for i in held], labels[held], classes, **how),
            ImageSplit(test, *_listing(test, classes), classes, **how),
        )
    assert select is not None
    return (
        ImageSplit(train, names, labels, classes, augment=augment, **how),
        ImageSplit(select, *_listing(select, classes), classes, **how),
        ImageSplit(test, *_listing(test, classes), classes, **how),
    )


def _classes(train: Path) -> list[str]:
    if not train.is_dir():
        raise InputError(
            f"there is no folder {train}", where="data.imagefolder", hint="it needs train/ and test/, each with a subfolder per class"
        )
    found = sorted(path.name for path in train.iterdir() if path.is_dir() and not path.name.startswith("."))
    if len(found) < 2:
        raise InputError(f"{train} has {len(found)} class folders, at least 2 are needed", where="data.imagefolder")
    return found


def _listing(folder: Path, classes: list[str]) -> tuple[list[str], np.ndarray]:
    """Paths of images below a split's folder, and their class numbers."""
    import numpy as np

    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}", where="data.imagefolder", hint="it needs train/ and test/ (or val/)")
    strange = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".") and path.name not in classes)
    if strange:
        raise InputError(f"the class {strange[0]!r} is in {folder.name}/ but not in train/", where=str(folder))
    names, labels = [], []
    for number, name in enumerate(classes):
        found = sorted(path for path in (folder / name).rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
        if not found and folder.name == "train":
            raise InputError(f"the class {name!r} has no image in train/", where=str(folder), hint=f"known: {', '.join(sorted(SUFFIXES))}")
        names += [path.relative_to(folder).as_posix() for path in found]
        labels += [number] * len(found)
    if not names:
        raise InputError("the folder holds no image", where=str(folder), hint=f"known: {', '.join(sorted(SUFFIXES))}")
    return names, np.asarray(labels, dtype=np.int64)


def _parted(labels: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    count = round(share * len(labels))
    if not 0 < count < len(labels):
        raise InputError(f"select_share {share} of {len(labels)} training images leaves one split empty", where="data.args.select_share")
    kept, held = stratified(labels, [len(labels) - count, count], seed)
    return kept, held
