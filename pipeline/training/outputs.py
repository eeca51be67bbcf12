"""What a model returns, by head."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor
    from torch.nn import Module


class Split(Protocol):
    """What training and prediction need of a split (see `pipeline.sources.Split`)."""

    def __len__(self) -> int: ...

    def batch(self, index: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Inputs by name and targets by head of the given sample numbers."""
        ...


def by_head(found: Any, heads: Iterable[str]) -> dict[str, Tensor]:
    """One tensor per head from a tensor, a sequence in the heads' order, or a mapping by head.

    Raises:
        InputError: another number of outputs, or a head that is not there.
    """
    names = list(heads)
    if isinstance(found, Mapping):
        missing = [name for name in names if name not in found]
        if missing:
            raise InputError(
                f"the model returns no output {missing[0]!r}", where="model.heads", hint=f"it returns {', '.join(map(str, found))}"
            )
        return {name: found[name] for name in names}
    outputs = list(found) if isinstance(found, Sequence) else [found]
    if len(outputs) != len(names):
        what = f"the model returns {len(outputs)} outputs, the recipe names {len(names)} heads ({', '.join(names)})"
        raise InputError(what, where="model.heads", hint="name the outputs in the order in which forward() returns them")
    return dict(zip(names, outputs, strict=True))


def forward(model: Module, inputs: Mapping[str, np.ndarray], *, heads: Iterable[str]) -> dict[str, np.ndarray]:
    """The model's outputs on one batch, in eval mode without gradients, on the device where it is.

    Args:
        model: Its train or eval mode is put back.
        inputs: By name, in the order of forward().
        heads: Names of the outputs.

    Returns:
        By head, float32 [n, ...].
    """
    import torch

    training = model.training
    device = next((value.device for value in model.parameters()), torch.device("cpu"))
    try:
        with torch.inference_mode():
            found = by_head(model.eval()(*(torch.from_numpy(value).to(device) for value in inputs.values())), heads)
            return {name: value.float().cpu().numpy() for name, value in found.items()}
    finally:
        model.train(training)


def predict(
    model: Module, split: Split, *, heads: Iterable[str], device: str = "cpu", batch_size: int = 256, threads: int | None = None
) -> dict[str, np.ndarray]:
    """The model's outputs on every sample of a split, in order, in eval mode without gradients.

    Args:
        model: Moved to `device`; its train or eval mode is put back.
        split: The samples.
        heads: Names of the outputs.
        device: torch device.
        batch_size: Samples per forward pass.
        threads: CPU threads; torch's own number when None.

    Returns:
        By head, float32 [len(split), ...].
    """
    import numpy as np

    from pipeline.training.repeatable import repeatable

    names = list(heads)
    model.to(device)
    with repeatable(threads):
        parts = [
            forward(model, split.batch(np.arange(start, min(start + batch_size, len(split))))[0], heads=names)
            for start in range(0, len(split), batch_size)
        ]
    return {name: np.concatenate([part[name] for part in parts]) for name in names}
