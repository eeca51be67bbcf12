"""Random changes of training images, drawn from a given generator alone: a row per name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    from pipeline.sources.prepare import Preparation

    Change = Callable[[Image, Preparation, np.random.Generator], Image]

AREA, RATIO, TRIES = (0.35, 1.0), (3 / 4, 4 / 3), 10
"""Share of the image's area and aspect ratio of a random crop (Szegedy et al. 2015, with a larger least area)."""


def random_crop(image: Image, to: Preparation, rng: np.random.Generator) -> Image:
    """A random part of the image, resized to the input's size."""
    from pipeline.sources.prepare import resampling

    height, width = to.size
    box = (0, 0, image.width, image.height)
    for _ in range(TRIES):
        area = image.width * image.height * rng.uniform(*AREA)
        ratio = math.exp(rng.uniform(math.log(RATIO[0]), math.log(RATIO[1]))) * width / height
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= image.width and 0 < h <= image.height:
            left, top = int(rng.integers(image.width - w + 1)), int(rng.integers(image.height - h + 1))
            box = (left, top, left + w, top + h)
            break
    return image.resize((width, height), resampling(to.interpolation), box=box)


def whole(image: Image, to: Preparation, rng: np.random.Generator) -> Image:
    """The middle of the image at the input's size."""
    from pipeline.sources.prepare import SHORTER_SIDE, centre, resampling

    return centre(image, to.size, SHORTER_SIDE, resampling(to.interpolation))


def flip(image: Image, to: Preparation, rng: np.random.Generator) -> Image:
    """Left and right exchanged, every second time."""
    from PIL.Image import Transpose

    return image.transpose(Transpose.FLIP_LEFT_RIGHT) if rng.random() < 0.5 else image


AUGMENTATIONS: dict[str, tuple[Change, ...]] = {
    "none": (),
    "flip": (whole, flip),
    "crop": (random_crop,),
    "crop-flip": (random_crop, flip),
}
"""Name -> changes in order; the first one brings the image to the input's size. `none` evaluates as on other splits."""
