"""The real TensorRT Python bindings of several versions, importable on a machine that has neither TensorRT's libraries nor a GPU.

The bindings are wheels; a loader needs the C functions that they link to, so empty libraries with those names are compiled.
Enums, classes, method names and docstrings are then the true ones of that version; nothing can be built or run.

As a program: `python tests/contract/bindings.py 11.4.0.106` installs that version into `.contract/` and says where.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / ".contract"
WHEELS = {
    "8.6.1": "tensorrt-bindings",
    "10.3.0": "tensorrt-cu12-bindings",
    "10.13.3.9": "tensorrt-cu13-bindings",
    "11.0.0.114": "tensorrt-cu13-bindings",
    "11.4.0.106": "tensorrt-cu13-bindings",
}
"""Version -> the wheel that holds its bindings."""
OURS = re.compile(r"(?:createInfer|createNv|get[A-Z]|initLibNv|_ZN11nvuffparser|_ZN14nvcaffeparser)\w*")
"""Undefined symbols that NVIDIA's libraries define, and the C and C++ runtimes do not."""


class CannotInstallError(RuntimeError):
    """The contract cannot be checked here: this fails, it does not skip."""


def environment(version: str) -> dict[str, str]:
    """The environment in which `import tensorrt` imports the bindings of `version`; installs them when needed.

    Raises:
        CannotInstallError: no wheel, or no compiler.
    """
    place = ROOT / version
    if not (place / "ready").exists():
        _install(version, place)
    site, libraries = place / "site", place / "lib"
    paths = [str(site), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, [str(libraries), os.environ.get("LD_LIBRARY_PATH", "")])),
        "POLYGRAPHY_AUTOINSTALL_DEPS": "0",
        "POLYGRAPHY_USE_TENSORRT_RTX": "0",
    }


def _install(version: str, place: Path) -> None:
    """Install into a folder beside, then rename: a run that was broken off leaves nothing half-made."""
    ROOT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT) as scratch:
        made = Path(scratch) / version
        (made / "lib").mkdir(parents=True)
        wheel = f"{WHEELS[version]}=={version}"
        _run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(made / "site"), wheel])
        _stub_libraries(next((made / "site").rglob("tensorrt*.so")), made / "lib")
        module = made / "site" / "tensorrt"
        if not module.exists():
            module.mkdir()
            (module / "__init__.py").write_text("from tensorrt_bindings import *\nfrom tensorrt_bindings import __version__\n")
        (made / "ready").touch()
        shutil.rmtree(place, ignore_errors=True)
        made.rename(place)


def _stub_libraries(bindings: Path, target: Path) -> None:
    """One empty library per needed one, all with every symbol that the bindings leave undefined."""
    undefined = _run(["nm", "-D", "--undefined-only", str(bindings)]).split()
    source = target / "empty.c"
    source.write_text("".join(f"void *{symbol}(void) {{ return 0; }}\n" for symbol in sorted(set(filter(OURS.fullmatch, undefined)))))
    for library in re.findall(r"NEEDED.*\[(lib(?:nv|cud|cublas)[^\]]*)\]", _run(["readelf", "-d", str(bindings)])):
        _run(["gcc", "-shared", "-fPIC", f"-Wl,-soname,{library}", "-o", str(target / library), str(source)])


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise CannotInstallError(f"{command[0]}: {error}") from None
    if done.returncode != 0:
        raise CannotInstallError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    for wanted in sys.argv[1:] or WHEELS:
        print(environment(wanted)["PYTHONPATH"].partition(os.pathsep)[0])
