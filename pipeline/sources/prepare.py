"""From a decoded image to the array that the model reads: the model's own preparation where it has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.errors import InputError, MissingPackageError

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

SHORTER_SIDE = 0.875
"""Share of the resized shorter side that the centre crop keeps, where no model says otherwise."""
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Preparation:
    """How images become inputs."""

    size: tuple[int, int]
    """Height and width of the input."""
    channels: int
    """3 (RGB) or 1 (grey)."""
    mean: tuple[float, ...]
    std: tuple[float, ...]
    """Per channel, of values in 0..1."""
    interpolation: str
    """`bilinear`, `bicubic`, `nearest`, `lanczos`."""
    evaluate: Callable[[Image], np.ndarray]
    """Without randomness: float32 [channels, height, width]."""

    def array(self, image: Image) -> np.ndarray:
        """An image of the input's size as float32 [channels, height, width], normalised."""
        import numpy as np

        values = np.asarray(image, dtype=np.float32).reshape(*self.size, self.channels) / np.float32(255.0)
        normal: np.ndarray = (values - np.asarray(self.mean, np.float32)) / np.asarray(self.std, np.float32)
        return np.ascontiguousarray(normal.transpose(2, 0, 1))

    def mode(self, image: Image) -> Image:
        """The image in RGB or grey, on white where it is transparent in a palette or alpha channel."""
        return image.convert("L" if self.channels == 1 else "RGB")


def preparation(model: Mapping[str, Any] | None, args: Mapping[str, Any]) -> Preparation:
    """The preparation that a model asks for.

    Args:
        model: The recipe's `model` section: a timm or torchvision model brings its own preparation.
        args: `size` (pixels, or [height, width]) replaces the model's; for other models also `channels`, `mean`,
            `std`, `interpolation`, `crop_share`.
    """
    kind = next((kind for kind in OF_KIND if model and model.get(kind)), None)
    size = _size(args["size"]) if args.get("size") is not None else None
    if kind is None or model is None:
        return _own(args, size or (224, 224))
    return OF_KIND[kind](str(model[kind]), size, model.get("args") or {})


def _size(value: Any) -> tuple[int, int]:
    sides = [value, value] if isinstance(value, int) else value
    if not (isinstance(sides, list) and len(sides) == 2 and all(isinstance(side, int) and 0 < side <= 4096 for side in sides)):
        raise InputError(f"size must be pixels or [height, width] (at most 4096), not {value!r}", where="data.args.size")
    return sides[0], sides[1]


def _timm(name: str, size: tuple[int, int] | None, args: Mapping[str, Any]) -> Preparation:
    try:
        import timm
        from timm.data import create_transform, resolve_data_config
    except ImportError:
        raise MissingPackageError("timm", extra="train", purpose=f"preparing images for {name}") from None
    found = timm.get_pretrained_cfg(name)
    if found is None:
        raise InputError(f"timm has no model {name!r}", where="model.timm")
    config = resolve_data_config({}, pretrained_cfg=found.to_dict())
    channels = int(args.get("in_chans", 3))
    if channels not in (1, 3):
        raise InputError(f"images have 1 or 3 channels, the model takes {channels}", where="model.args.in_chans")
    config["input_size"] = (channels, *(size or config["input_size"][1:]))
    if channels == 1:  # a grey image is normalised by the mean of the three channels' figures
        config["mean"], config["std"] = ((sum(config[key]) / len(config[key]),) for key in ("mean", "std"))
    return _of_tensor(
        create_transform(**config, is_training=False), config["input_size"], config["mean"], config["std"], config["interpolation"]
    )


def _torchvision(name: str, size: tuple[int, int] | None, args: Mapping[str, Any]) -> Preparation:
    try:
        from torchvision.models import get_model_weights
        from torchvision.transforms._presets import ImageClassification
    except ImportError:
        raise MissingPackageError("torchvision", extra="train", purpose=f"preparing images for {name}") from None
    try:
        weights = next(iter(get_model_weights(name)))
    except (ValueError, StopIteration):
        raise InputError(f"torchvision has no model {name!r}", where="model.torchvision") from None
    preset = weights.transforms()
    if size:
        share = preset.crop_size[0] / preset.resize_size[0]
        preset = ImageClassification(
            crop_size=size[0], resize_size=round(size[0] / share), mean=preset.mean, std=preset.std, interpolation=preset.interpolation
        )
    side = preset.crop_size[0]
    return _of_tensor(preset, (3, side, side), preset.mean, preset.std, preset.interpolation.value)


OF_KIND: dict[str, Callable[[str, tuple[int, int] | None, Mapping[str, Any]], Preparation]] = {"timm": _timm, "torchvision": _torchvision}
"""Kind of model -> its own preparation, from its name, the size that replaces its own, and the model's args."""


def _of_tensor(transform: Any, shape: tuple[int, ...], mean: Any, std: Any, interpolation: str) -> Preparation:
    def evaluate(image: Image) -> np.ndarray:
        found: np.ndarray = transform(image).numpy()
        return found

    return Preparation((shape[1], shape[2]), shape[0], tuple(mean), tuple(std), interpolation, evaluate)


def _own(args: Mapping[str, Any], size: tuple[int, int]) -> Preparation:
    channels = int(args.get("channels", 3))
    if channels not in (1, 3):
        raise InputError(f"channels must be 1 or 3, not {channels}", where="data.args.channels")
    mean = tuple(args.get("mean", IMAGENET_MEAN if channels == 3 else (0.5,)))
    std = tuple(args.get("std", IMAGENET_STD if channels == 3 else (0.5,)))
    if len(mean) != channels or len(std) != channels or min(std) <= 0:
        raise InputError(f"mean and std need {channels} values each, std above zero", where="data.args")
    share = float(args.get("crop_share", SHORTER_SIDE))
    if not 0 < share <= 1:
        raise InputError(f"crop_share must be above 0 and at most 1, not {share}", where="data.args.crop_share")

    def evaluate(image: Image) -> np.ndarray:
        return made.array(centre(image, size, share, resampling(made.interpolation)))

    made = Preparation(size, channels, mean, std, str(args.get("interpolation", "bilinear")), evaluate)
    resampling(made.interpolation)
    return made


def centre(image: Image, size: tuple[int, int], share: float, how: Any) -> Image:
    """The middle of an image: resized so that the crop takes `share` of the side that binds, then cropped to `size`."""
    height, width = size
    scale = max(height / share / image.height, width / share / image.width)
    resized = image.resize((max(width, round(image.width * scale)), max(height, round(image.height * scale))), how)
    left, top = (resized.width - width) // 2, (resized.height - height) // 2
    return resized.crop((left, top, left + width, top + height))


def resampling(name: str) -> Any:
    """Pillow's filter of a name.

    Raises:
        InputError: an unknown name.
    """
    from PIL.Image import Resampling

    table = {"nearest": Resampling.NEAREST, "bilinear": Resampling.BILINEAR, "bicubic": Resampling.BICUBIC, "lanczos": Resampling.LANCZOS}
    if name not in table:
        raise InputError(f"no interpolation {name!r}", where="data.args.interpolation", hint=f"one of {', '.join(table)}")
    return table[name]
