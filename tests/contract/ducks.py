"""Objects that stand where the library's own would, with no attribute that the true class of this version lacks."""

from __future__ import annotations

from typing import Any

import tensorrt as trt


def duck(true_class: type) -> type:
    """A base class that refuses every public attribute that `true_class` lacks, for reading and for setting."""
    names = set(dir(true_class))

    class Duck:
        def __getattribute__(self, name: str) -> Any:
            if not name.startswith("_") and name not in names:
                raise AttributeError(f"{true_class.__name__} of TensorRT {trt.__version__} has no {name}")
            return object.__getattribute__(self, name)

        def __setattr__(self, name: str, value: Any) -> None:
            if not name.startswith("_") and name not in names:
                raise AttributeError(f"{true_class.__name__} of TensorRT {trt.__version__} has no {name}")
            object.__setattr__(self, name, value)

    return Duck
