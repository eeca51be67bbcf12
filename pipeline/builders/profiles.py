"""Optimization profiles are checked before a build: TensorRT accepts a wrong name or min > opt and fails much later, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.errors import InputError

ProfileShapes = Mapping[str, Mapping[str, Sequence[int]]]
"""Input name -> `min` | `opt` | `max` -> shape."""
KINDS = ("min", "opt", "max")


def check_profiles(profiles: Sequence[ProfileShapes], inputs: Mapping[str, Sequence[int | str | None]]) -> None:
    """Check profiles against a network's inputs.

    Args:
        profiles: In the order in which TensorRT numbers them.
        inputs: Shape by input name; an axis that is no whole number from 0 is dynamic.

    Raises:
        InputError: a name that is no input, a dynamic input without shapes, a rank or fixed extent that differs,
            an extent below 1 (0 for an empty tensor is refused: nothing can be timed with it), or not min <= opt <= max.
    """
    dynamic = [name for name, shape in inputs.items() if any(not _fixed(extent) for extent in shape)]
    if dynamic and not profiles:
        raise InputError(f"the dynamic inputs {', '.join(dynamic)} need an optimization profile", where="build.profiles")
    for index, profile in enumerate(profiles):
        where = f"build.profiles[{index}]"
        unknown = sorted(set(profile) - set(inputs))
        if unknown:
            raise InputError(f"no such input: {', '.join(unknown)}", where=where, hint=f"the network's inputs: {', '.join(inputs)}")
        missing = [name for name in dynamic if name not in profile]
        if missing:
            raise InputError(f"no shapes for the dynamic input {', '.join(missing)}", where=where)
        for name, shapes in profile.items():
            _check_shapes(shapes, inputs[name], f"{where}.{name}")


def _check_shapes(shapes: Mapping[str, Sequence[int]], shape: Sequence[int | str | None], where: str) -> None:
    if set(shapes) != set(KINDS):
        raise InputError(f"needs min, opt and max, has {', '.join(sorted(shapes)) or 'nothing'}", where=where)
    for kind in KINDS:
        extents = shapes[kind]
        if len(extents) != len(shape):
            raise InputError(f"{kind} has {len(extents)} axes, the input {len(shape)}", where=where)
        for axis, (extent, wanted) in enumerate(zip(extents, shape, strict=True)):
            if extent < 1 or (_fixed(wanted) and extent != wanted):
                raise InputError(f"{kind}[{axis}] is {extent}, the input's axis is {wanted}", where=where)
    for axis, (low, opt, high) in enumerate(zip(*(shapes[kind] for kind in KINDS), strict=True)):
        if not low <= opt <= high:
            raise InputError(f"axis {axis}: min {low} <= opt {opt} <= max {high} does not hold", where=where)


def _fixed(extent: int | str | None) -> bool:
    return isinstance(extent, int) and extent >= 0


def profile_of(profiles: Sequence[ProfileShapes], shapes: Mapping[str, Sequence[int]]) -> int:
    """The profile to run `shapes` with: the one whose opt is nearest among those that allow them, 0 without profiles.

    Raises:
        InputError: no profile allows the shapes.
    """
    if not profiles:
        return 0
    allowed = [index for index, profile in enumerate(profiles) if all(_inside(profile[name], shapes[name]) for name in profile)]
    if not allowed:
        raise InputError(f"no optimization profile allows the shapes {dict(shapes)}", where="engine inputs", hint="measure inside min..max")
    return min(allowed, key=lambda index: sum(_distance(profiles[index][name]["opt"], shapes[name]) for name in profiles[index]))


def _inside(ranges: Mapping[str, Sequence[int]], shape: Sequence[int]) -> bool:
    return len(shape) == len(ranges["min"]) and all(
        low <= extent <= high for low, extent, high in zip(ranges["min"], shape, ranges["max"], strict=True)
    )


def _distance(opt: Sequence[int], shape: Sequence[int]) -> float:
    return sum(abs(a - b) / max(a, b) for a, b in zip(opt, shape, strict=True))


def untuned_batches(profiles: Sequence[ProfileShapes], batches: Sequence[int]) -> list[int]:
    """Batch sizes (axis 0) that no profile's opt shape tunes: sparse may win there by luck or lose by neglect."""
    tuned = {shapes["opt"][0] for profile in profiles for shapes in profile.values() if shapes["opt"]}
    return [batch for batch in batches if batch not in tuned]
