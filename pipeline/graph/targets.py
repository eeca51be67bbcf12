"""The target of a check as numbers, and which rules hold for its version."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.errors import InputError
from pipeline.records.check import Target

Version = tuple[int, ...]
ONLY_STRONG = (11, 0)
"""The TensorRT version from which on every network is strongly typed."""


@dataclass(frozen=True)
class Aim:
    """A target that was understood."""

    sm: Version | None
    tensorrt: Version | None
    typing: str | None
    """`strong`, `weak`, or None where both are possible."""


def aim(target: Target) -> Aim:
    """Understand a target.

    Raises:
        InputError: a version that is none, a typing that is none, or one that the version does not have.
    """
    sm = _sm(target.sm)
    tensorrt = _version(target.tensorrt, "TensorRT version", "10.13")
    if target.typing not in (None, "strong", "weak"):
        raise InputError(f"typing {target.typing!r} is neither 'strong' nor 'weak'", where="--typing")
    typing = target.typing
    if tensorrt is not None:
        if typing == "weak" and tensorrt >= ONLY_STRONG:
            raise InputError(
                f"TensorRT {target.tensorrt} has no weak typing", where="--typing", hint="from 11.0 on every network is strongly typed"
            )
        if typing == "strong" and tensorrt < (9,):
            raise InputError(f"TensorRT {target.tensorrt} has no strong typing", where="--typing", hint="it came with 9.1 and 10.0")
        if typing is None and tensorrt >= ONLY_STRONG:
            typing = "strong"
        if typing is None and tensorrt < (9,):
            typing = "weak"
    return Aim(sm, tensorrt, typing)


def _sm(text: str | None) -> Version | None:
    if text is None:
        return None
    found = re.fullmatch(r"(?:sm_?)?(\d{1,2})\.?(\d)[af]?", text.strip().lower())
    if not found:
        raise InputError(f"compute capability {text!r} is none", where="--sm", hint="write it as 8.6")
    return int(found[1]), int(found[2])


def _version(text: str | None, what: str, example: str) -> Version | None:
    if text is None:
        return None
    found = re.match(r"(\d{1,2})(?:\.(\d+))?(?:\.\d+)*(?:[.+-]?\w+)?$", text.strip())
    if not found or re.fullmatch(r"\d{3,}", text.strip()):
        hint = f"write it as {example} (a banner's v8602 is 8.6.2, v101300 is 10.13.0)"
        raise InputError(f"{what} {text!r} is none", where="--tensorrt", hint=hint)
    return int(found[1]), int(found[2] or 0)


def covers(spec: str, version: Version | None) -> bool | None:
    """Whether a version range of `codes` (`all`, `8.x`, `>=10.0`, `<11.0`) holds for a version; None where that is not known."""
    if spec == "all":
        return True
    if version is None:
        return None
    sign, digits = re.match(r"(>=|<)?([\d.x]+)$", spec).groups()  # type: ignore[union-attr]
    if digits.endswith(".x"):
        return version[0] == int(digits[:-2])
    bound = tuple(int(part) for part in digits.split("."))
    return version < bound if sign == "<" else version >= bound
