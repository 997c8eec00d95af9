"""Element types by the names of problem.toml, and inputs drawn from a seed."""

import hashlib

import torch

DTYPES = {
    "bool": torch.bool,
    "u8": torch.uint8,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "f8_e4m3": torch.float8_e4m3fn,
    "f8_e5m2": torch.float8_e5m2,
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def dtype_name(dtype):
    return _NAMES.get(dtype, str(dtype).removeprefix("torch."))


def generator_for(*parts):
    """A generator that depends on all the parts and nothing else; the same on every machine."""
    digest = hashlib.sha256("/".join(str(part) for part in parts).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") & (2**63 - 1))


def fill(info, spec, generator):
    """One declared input: `info` has shape, dtype, low and high on this rank, `spec` how it is filled."""
    dtype = DTYPES[info["dtype"]]
    shape = info["shape"]
    kind = spec["fill"]
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    if kind == "normal":
        return (torch.randn(shape, generator=generator, dtype=wide) * spec["scale"]).to(dtype)
    if kind == "uniform":
        return ((torch.rand(shape, generator=generator, dtype=wide) * 2 - 1) * spec["scale"]).to(dtype)
    if kind == "integers":
        values = torch.randint(info["low"], info["high"], shape, generator=generator, dtype=torch.int64)
        return values.to(wide).to(dtype) if dtype.is_floating_point else values.to(dtype)
    if kind == "arange":
        n = 1
        for extent in shape:
            n *= extent
        values = torch.arange(n, dtype=torch.int64).reshape(shape)
        return values.to(wide).to(dtype) if dtype.is_floating_point else values.to(dtype)
    if kind == "ones":
        return torch.ones(shape, dtype=wide).to(dtype)
    return torch.zeros(shape, dtype=wide).to(dtype)


def widen(tensors):
    """The same values, floating ones in float64; every other type is kept."""
    return {n: (t.to(torch.float64) if t.dtype.is_floating_point else t.clone()) for n, t in tensors.items()}


def unlike(tensor):
    """A tensor of the same shape and type with other values, for seeing whether anything depends on them."""
    if tensor.dtype.is_floating_point:
        other = torch.randn(tensor.shape, generator=generator_for("unlike", tensor.numel())) * 0.75 + 0.5
        return other.to(tensor.dtype)
    if tensor.dtype == torch.bool:
        return ~tensor
    return tensor.flatten().flip(0).reshape(tensor.shape)
