"""What each TensorRT version can do: one row per meaning, so that what a version lacks is refused with the reason."""

from __future__ import annotations

import re

import msgspec

from pipeline.builders.options import TensorRTOptions
from pipeline.errors import InputError

Version = tuple[int, ...]
OLDEST: Version = (8, 6)


class Ability(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that some versions can do."""

    name: str
    since: Version = OLDEST
    until: Version | None = None
    """First version without it."""
    why: str
    """What to know where it is missing."""

    def in_version(self, version: Version) -> bool:
        """Whether `version` has it."""
        return version >= self.since and (self.until is None or version < self.until)


ABILITIES: dict[str, Ability] = {
    row.name: row
    for row in (
        Ability(name="weak typing", until=(11, 0), why="networks are always strongly typed from 11.0: export the file in the type to run"),
        Ability(name="strong typing", since=(10, 0), why="STRONGLY_TYPED networks came with 10.0: use typing: weak"),
        Ability(name="fp16 flag", until=(11, 0), why="precision flags are gone from 11.0: export the file as fp16"),
        Ability(name="bf16 flag", since=(10, 0), until=(11, 0), why="BuilderFlag.BF16 exists from 10.0 to 10.x only"),
        Ability(name="max tactics", since=(10, 4), why="IBuilderConfig.max_num_tactics and --maxTactics came with 10.4"),
        Ability(name="strict NaNs", since=(10, 6), why="BuilderFlag.STRICT_NANS came with 10.6"),
        Ability(name="error on cache miss", since=(10, 0), why="ERROR_ON_TIMING_CACHE_MISS came with 10.0"),
        Ability(name="progress monitor", since=(10, 0), why="IProgressMonitor came with 10.0"),
        Ability(name="several profiles in trtexec", since=(9, 0), why="trtexec's --profile came after 8.6"),
    )
}


def parse_version(text: str) -> Version:
    """`10.13.3.9` -> (10, 13, 3, 9).

    Raises:
        InputError: no version, or one before 8.6.
    """
    numbers = re.match(r"\d+(\.\d+)+", text)
    if numbers is None:
        raise InputError(f"not a TensorRT version: {text!r}")
    version = tuple(int(part) for part in numbers.group().split("."))
    if version < OLDEST:
        raise InputError(f"TensorRT {text} is too old", hint="8.6, 10.x and 11.x are supported")
    return version


def banner_version(tag: str) -> str:
    """The version in trtexec's banner: `v8602` -> `8.6.2`, `v101303` -> `10.13.3`.

    Before 10 the tag is major, minor and the patch in one or two digits; from 10 on major and two digits each.
    """
    digits = tag.lstrip("v")
    if not re.fullmatch(r"\d{4,6}", digits):
        raise InputError(f"not a TensorRT version tag: {tag!r}", where="trtexec's banner")
    if len(digits) < 6:  # 8.x and 9.x: the patch is what follows the minor
        return f"{digits[0]}.{digits[1]}.{int(digits[2:])}"
    return f"{int(digits[:2])}.{int(digits[2:4])}.{int(digits[4:])}"


def has(ability: str, version: Version) -> bool:
    """Whether `version` has the ability."""
    return ABILITIES[ability].in_version(version)


def require(ability: str, version: Version, *, where: str) -> None:
    """Refuse what `version` lacks.

    Raises:
        InputError: with the reason and what to do instead.
    """
    row = ABILITIES[ability]
    if not row.in_version(version):
        raise InputError(f"TensorRT {'.'.join(map(str, version))} has no {row.name}", where=where, hint=row.why)


def is_strong(options: TensorRTOptions, version: Version) -> bool:
    """Whether the network is strongly typed: as asked, or as the version has it."""
    return has("strong typing", version) and (options.typing == "strong" or not has("weak typing", version))


def check(options: TensorRTOptions, precision: str, version: Version) -> None:
    """Refuse every option that `version` cannot follow, before anything is built.

    Raises:
        InputError: the first such option.
    """
    if options.typing in ("weak", "strong"):
        require(f"{options.typing} typing", version, where="build.typing")
    if is_strong(options, version):
        if options.allowed(precision) != precision:
            raise InputError(
                f"a strongly typed network runs the file's types: {precision} cannot become {options.precision}",
                where="build.precision",
                hint=f"export.precision: {options.precision}, or convert the file",
            )
    elif options.allowed(precision) != "fp32":
        require(f"{options.allowed(precision)} flag", version, where="build.precision")
    if options.max_tactics is not None:
        require("max tactics", version, where="build.max_tactics")
    if options.strict_nans:
        require("strict NaNs", version, where="build.strict_nans")
