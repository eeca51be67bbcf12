"""Rules of operators that compute: position by position, over a dimension, normalisation, multiplication by weights."""

from __future__ import annotations

from pipeline.sparsity.permutation.channels import Group, Value
from pipeline.sparsity.permutation.follow import Call, NotFollowedError, Rule, Use
from pipeline.sparsity.permutation.ops_shape import meet

_POINTWISE = (
    *("add", "addcmul", "clamp", "clamp_max", "clamp_min", "div", "lerp", "maximum", "minimum", "mul", "pow", "rsub", "sub", "where"),
    *("abs", "cos", "erf", "exp", "log", "neg", "reciprocal", "round", "rsqrt", "sign", "sin", "sqrt", "square", "tanh"),
    *("elu", "gelu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "mish", "relu", "relu6", "sigmoid", "silu", "softplus"),
    *("eq", "ge", "gt", "le", "logical_and", "logical_not", "logical_or", "lt", "masked_fill", "ne", "fmod", "remainder", "atan2"),
    *("alias", "clone", "contiguous", "detach", "to", "_to_copy", "type_as", "float", "double", "half", "bfloat16"),
    *("dropout", "feature_dropout", "alpha_dropout"),
)


def _pointwise(call: Call) -> Value:
    return meet(call, call.tensors(), call.shape)


def _over_dimension(call: Call) -> Value:
    """Softmax and its like treat the positions of one dimension alike, within each position of the others."""
    value = call.value("self")
    dim = int(call.args["dim"]) % len(value.shape)
    for group in value.groups:
        if dim in group.dims:
            call.channels.separate(group, tuple(other for other in group.dims if other != dim), call.name)
    return Value(call.shape, value.groups, value.why)


def _reduce(call: Call) -> Value:
    """Mean, sum, max: what is reduced away may come in any order."""
    value = call.value("self")
    ndim = len(value.shape)
    given = call.args.get("dim")
    dims = {dim % ndim for dim in ([given] if isinstance(given, int) else given or range(ndim))}
    keep = bool(call.args.get("keepdim", False))
    groups = []
    for group in value.groups:
        left = tuple(dim for dim in group.dims if dim not in dims)
        if len(left) < len(group.dims):
            call.channels.separate(group, left, call.name)
        else:
            groups.append(group if keep else group.moved(tuple(dim - sum(one < dim for one in dims) for dim in left)))
    return Value(call.shape, tuple(groups), value.why or f"{call.name} reduces the channels away")


def _spatial(count: int) -> Rule:
    """Pooling and resizing mix the last `count` dimensions and leave the others alone."""

    def rule(call: Call) -> Value:
        value = call.value("self")
        mixed = range(len(value.shape) - count, len(value.shape))
        if any(dim in group.dims for group in value.groups for dim in mixed if value.shape[dim] > 1):
            raise NotFollowedError(f"{call.name} runs over channels")
        return Value(call.shape, value.groups, value.why)

    return rule


def _per_channel(call: Call) -> Value:
    """Batch norm, instance norm, PReLU: a parameter per channel of dimension 1."""
    value = call.value("input" if "input" in call.args else "self")
    group = value.over(1)
    for name in ("weight", "bias", "running_mean", "running_var"):
        own = call.parameter(name)
        if own is None or own.atoms.size == 1:
            continue
        if group is None:
            call.channels.fix(own, value.why)
        else:
            _alike(call, group, own, 1)
    return Value(call.shape, value.groups, value.why)


def _alike(call: Call, group: Group, own: Group, dim: int) -> None:
    """A 1-d parameter's atoms are the channels of one dimension of a group."""
    shape = [size if other == dim else 1 for other, size in zip(group.dims, group.atoms.shape, strict=True)]
    call.channels.same(group, Group(group.dims, own.atoms.reshape(shape)), call.name)


def _layer_norm(call: Call) -> Value:
    value = call.value("input")
    ndim, count = len(value.shape), len(call.args["normalized_shape"])
    inside = set(range(ndim - count, ndim))
    for group in value.groups:
        if inside & set(group.dims):
            call.channels.separate(group, tuple(dim for dim in group.dims if dim not in inside), call.name)
    for name in ("weight", "bias"):
        node = call.args.get(name)
        if node is not None:
            meet(call, [value, call.value(name)], value.shape)
    return Value(call.shape, value.groups, value.why)


def _group_norm(call: Call) -> Value:
    value = _per_channel(call)
    group = value.over(1)
    if group is not None:
        if group.dims != (1,) or group.sub is not None:
            raise NotFollowedError(f"{call.name} over channels in several dimensions")
        parts = int(call.args["num_groups"])
        call.channels.separate(Group((0, 1), group.atoms.reshape(parts, -1)), (0,), call.name)
    return value


def _linear(call: Call) -> Value:
    value = call.value("input")
    into = call.parameter("weight", dims=(1,))
    out = call.parameter("weight", dims=(0,))
    assert into is not None and out is not None
    last = len(value.shape) - 1
    _receive(call, value, last, into)
    _bias(call, out)
    call.follower.uses.append(Use(call.follower.stored[call.args["weight"].name], call.node.name, into))
    kept = []
    for group in value.groups:
        if last not in group.dims:
            kept.append(group)
        elif len(group.dims) > 1:
            call.channels.separate(group, tuple(dim for dim in group.dims if dim != last), call.name)
    return Value(call.shape, (*kept, Group((len(call.shape) - 1,), out.atoms)), f"{call.name} sets the order")


def _receive(call: Call, value: Value, dim: int, own: Group) -> None:
    """Tie a weight's input channels to the channels that arrive, or to their places where none are followed."""
    group = value.over(dim)
    if group is None:
        call.channels.fix(own, value.why)
    else:
        _alike(call, group, own, dim)


def _bias(call: Call, out: Group) -> None:
    bias = call.parameter("bias")
    if bias is not None:
        call.channels.same(out, bias, call.name)


def _conv(call: Call) -> Value:
    value = call.value("input")
    weight = call.args["weight"]
    shape = call.follower.shape(weight)
    groups = int(call.args["groups"])
    if any(dim in group.dims for group in value.groups for dim in range(2, len(value.shape)) if value.shape[dim] > 1):
        raise NotFollowedError(f"{call.name} runs over channels")
    channels = value.over(1)
    if groups == 1:
        out, into = call.parameter("weight", dims=(0,)), call.parameter("weight", dims=(1,))
        assert out is not None and into is not None
        _receive(call, value, 1, into)
        call.follower.uses.append(Use(call.follower.stored[weight.name], call.node.name, into))
    else:
        if channels is not None and (channels.dims != (1,) or channels.sub is not None):
            raise NotFollowedError(f"{call.name} over channels in several dimensions")
        out = _grouped(call, value, channels, shape, groups)
        call.follower.uses.append(Use(call.follower.stored[weight.name], call.node.name, None))
    _bias(call, out)
    if channels is not None:
        call.channels.separate(channels, tuple(dim for dim in channels.dims if dim != 1), call.name)
    return Value(call.shape, (Group((1,), out.atoms),), f"{call.name} sets the order")


def _grouped(call: Call, value: Value, channels: Group | None, shape: tuple[int, ...], groups: int) -> Group:
    """Output channels of a grouped convolution; its inputs stay within their groups, and move the weight's columns there."""
    per_group = shape[0] // groups
    if shape[1] == 1:
        out = call.parameter("weight", dims=(0,))
        assert out is not None
        if channels is None:
            call.channels.fix(out, value.why)
        elif per_group == 1:
            call.channels.same(channels, out, call.name)
        else:
            call.channels.fix(channels, f"{call.name} has several outputs for each channel")
            call.channels.fix(out, f"{call.name} has several outputs for each channel")
        return out
    view = (groups, per_group, *shape[1:])
    rows = call.parameter("weight", view, (0, 1))
    into = call.parameter("weight", view, (0, 2))
    assert rows is not None and into is not None
    call.channels.separate(rows, (0,), call.name)
    call.channels.separate(into, (0,), call.name)
    if channels is None:
        call.channels.fix(into, value.why)
    else:
        call.channels.same(Group((0, 1), channels.atoms.reshape(groups, shape[1])), Group((0, 1), into.atoms), call.name)
    return Group((0,), rows.atoms.reshape(-1))


def _conv_transpose(call: Call) -> Value:
    value = call.value("input")
    if int(call.args["groups"]) != 1:
        raise NotFollowedError(f"{call.name} has groups")
    if any(dim in group.dims for group in value.groups for dim in range(2, len(value.shape)) if value.shape[dim] > 1):
        raise NotFollowedError(f"{call.name} runs over channels")
    into, out = call.parameter("weight", dims=(0,)), call.parameter("weight", dims=(1,))
    assert into is not None and out is not None
    _receive(call, value, 1, into)
    _bias(call, out)
    return Value(call.shape, (Group((1,), out.atoms),), f"{call.name} sets the order")


def _embedding(call: Call) -> Value:
    out = call.parameter("weight", dims=(1,))
    rows = call.parameter("weight", dims=(0,))
    assert out is not None and rows is not None
    call.channels.fix(rows, f"{call.name} looks rows up by number")
    return Value(call.shape, (Group((len(call.shape) - 1,), out.atoms),), f"{call.name} sets the order")


def _matmul(call: Call) -> Value:
    left, right = (call.follower.value(call.args[name]) for name in ("self", "other" if "other" in call.args else "mat2"))
    return product(call, left, right, call.shape)


def product(call: Call, left: Value, right: Value, shape: tuple[int, ...]) -> Value:
    """Matrix product [.., m, k] x [.., k, n]; dimensions get the numbers of the result, the contracted one -1."""
    if len(left.shape) < 2 or len(right.shape) < 2:
        raise NotFollowedError(f"{call.name} multiplies vectors")
    ndim = len(shape)
    ours = [_renamed(group, len(left.shape), ndim, contracted=len(left.shape) - 1, kept=ndim - 2) for group in left.groups]
    theirs = [_renamed(group, len(right.shape), ndim, contracted=len(right.shape) - 2, kept=ndim - 1) for group in right.groups]
    a = next((group for group in ours if -1 in group.dims), None)
    b = next((group for group in theirs if -1 in group.dims), None)
    batch = tuple(range(ndim - 2))
    if a is not None and b is not None:
        if set(a.dims) | set(b.dims) <= {-1, *batch} and (a.dims == b.dims or a.dims == (-1,) or b.dims == (-1,)):
            wide, narrow = (a, b) if len(a.dims) >= len(b.dims) else (b, a)
            spread = [size if dim in narrow.dims else 1 for dim, size in zip(wide.dims, wide.atoms.shape, strict=True)]
            sub = None if narrow.sub is None else narrow.sub.reshape(spread)
            call.channels.same(wide, Group(wide.dims, narrow.atoms.reshape(spread), sub), call.name)
            call.channels.separate(wide, batch, call.name)
        else:
            call.channels.fix(a, f"{call.name} contracts channels over several dimensions")
            call.channels.fix(b, f"{call.name} contracts channels over several dimensions")
    elif a is not None or b is not None:
        call.channels.fix(a or b, (right if a else left).why)  # type: ignore[arg-type]
    kept = []
    for group in (*ours, *theirs):
        if -1 not in group.dims:
            call.channels.separate(group, batch, call.name)
            if not set(group.dims) <= set(batch):
                kept.append(group)
    if len({dim for group in kept for dim in group.dims}) < sum(len(group.dims) for group in kept):
        for group in kept:
            call.channels.fix(group, f"{call.name} leaves channels over shared dimensions")
        kept = []
    return Value(shape, tuple(kept), f"{call.name} sets the order")


def _renamed(group: Group, own: int, ndim: int, *, contracted: int, kept: int) -> Group:
    names = {dim: -1 if dim == contracted else kept if dim >= own - 2 else dim + ndim - own for dim in range(own)}
    return group.moved(tuple(names[dim] for dim in group.dims))


def _attention(call: Call) -> Value:
    """softmax(q k^T) v: q and k meet over the head's channels, and the head's output has the channels of v."""
    q, k, v = call.value("query"), call.value("key"), call.value("value")
    if len(q.shape) != len(v.shape) or q.shape[:-2] != k.shape[:-2] or k.shape[:-2] != v.shape[:-2]:
        raise NotFollowedError(f"{call.name} shares heads")
    scores = (*q.shape[:-1], k.shape[-2])
    last = len(k.shape) - 1
    flipped = {last: last - 1, last - 1: last}
    turned = Value(
        (*k.shape[:-2], k.shape[-1], k.shape[-2]),
        tuple(group.moved(tuple(flipped.get(dim, dim) for dim in group.dims)) for group in k.groups),
        k.why,
    )
    inner = product(call, q, turned, scores)
    mask = call.args.get("attn_mask")
    if mask is not None:
        inner = meet(call, [inner, call.value("attn_mask")], scores)
    for group in inner.groups:
        call.channels.fix(group, f"{call.name} has channels among its scores")
    return product(call, Value(scores, why=inner.why), v, call.shape)


def _shape_only(call: Call) -> Value:
    """Makes a new tensor of which only the shape comes from an input."""
    return Value(call.shape, why="a constant")


RULES: dict[str, Rule] = {
    **dict.fromkeys(("new_zeros", "new_ones", "new_full", "new_empty", "zeros_like", "ones_like", "empty_like"), _shape_only),
    **dict.fromkeys(_POINTWISE, _pointwise),
    **dict.fromkeys(("softmax", "log_softmax", "_softmax", "_log_softmax"), _over_dimension),
    **dict.fromkeys(("mean", "sum", "amax", "amin", "var", "std", "logsumexp"), _reduce),
    **dict.fromkeys(("max_pool1d", "avg_pool1d", "adaptive_avg_pool1d", "adaptive_max_pool1d", "upsample_nearest1d"), _spatial(1)),
    **dict.fromkeys(
        (
            *("max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d"),
            *("reflection_pad2d", "replication_pad2d"),
        ),
        _spatial(2),
    ),
    **dict.fromkeys(("max_pool3d", "avg_pool3d", "adaptive_avg_pool3d", "upsample_nearest3d", "upsample_trilinear3d"), _spatial(3)),
    **dict.fromkeys(("batch_norm", "instance_norm", "prelu"), _per_channel),
    **dict.fromkeys(("layer_norm", "rms_norm"), _layer_norm),
    "group_norm": _group_norm,
    "linear": _linear,
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _conv),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _conv_transpose),
    "embedding": _embedding,
    **dict.fromkeys(("matmul", "bmm", "mm"), _matmul),
    "scaled_dot_product_attention": _attention,
}
