"""Wraps torch.distributed for one run, so that every collective a reference issues is known before it is issued."""

import functools
import inspect
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.distributed_c10d as c10d

from echolo.faults import is_inside
from echolo.tensors import dtype_name

# Calls that move whole objects or batches are made of these, so they need no wrapper of their own.
_NAMES = (
    "all_reduce",
    "broadcast",
    "reduce",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_single",
    "gather",
    "gather_single",
    "gather_into_tensor",
    "scatter",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "reduce_scatter_single",
    "all_to_all",
    "all_to_all_single",
    "send",
    "recv",
    "isend",
    "irecv",
    "barrier",
    "monitored_barrier",
    "all_reduce_coalesced",
    "all_gather_coalesced",
    "_all_gather_base",
    "_reduce_scatter_base",
)
_FUNCTIONAL_NAMES = (
    "all_reduce",
    "broadcast",
    "all_gather_tensor",
    "all_gather_single",
    "reduce_scatter_tensor",
    "reduce_scatter_single",
    "all_to_all_single",
    "all_reduce_coalesced",
    "all_gather_into_tensor_coalesced",
    "reduce_scatter_tensor_coalesced",
    "permute_tensor",
    "all_gather_tensor_autograd",
    "reduce_scatter_tensor_autograd",
    "all_to_all_single_autograd",
)
_REDUCES = ("reduce",)


def tensors_in(value):
    """Every tensor in an argument: itself, or those of a list or tuple, nested or not."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def _n_bytes(value):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors_in(value))


def _human(n_bytes):
    for unit in ("bytes", "KiB", "MiB"):
        if n_bytes < 1024 or n_bytes % 1024:
            return f"{n_bytes:,} {unit}"
        n_bytes //= 1024
    return f"{n_bytes:,} GiB"


class CollectiveWatch:
    """Records calls while `recording` is a list, and tells `progress` about each before it is issued."""

    def __init__(self, rank, directory, progress):
        self.recording = None
        self.on_tensor = None  # called with every tensor that is handed to a collective
        self._rank = rank
        self._directory = directory
        self._progress = progress
        self._depth = 0
        self.original = {}

    def install(self):
        """Replaces the functions wherever a reference may get them from; call it before the reference is imported."""
        for name in _NAMES:
            inner = getattr(c10d, name, None)
            if inner is None:
                continue
            self.original[name] = inner
            outer = self._wrap(name, inner)
            setattr(c10d, name, outer)
            if hasattr(dist, name):
                setattr(dist, name, outer)
        for name in _FUNCTIONAL_NAMES:
            inner = getattr(functional, name, None)
            if inner is not None:
                setattr(functional, name, self._wrap(name, inner))

    def _wrap(self, name, inner):
        try:
            signature = inspect.signature(inner)
        except (TypeError, ValueError):
            signature = None

        @functools.wraps(inner)
        def outer(*args, **kwargs):
            if self.recording is None or self._depth > 0:
                return inner(*args, **kwargs)
            entry = self._describe(name, signature, args, kwargs)
            self.recording.append(entry)
            text = name
            if entry["bytes"]:
                text += f" of {_human(entry['bytes'])} {entry['dtype']}"
            if entry["peer"] >= 0:
                text += f" with rank {entry['peer']}"
            self._progress.collective(self._rank, text)
            self._depth += 1
            try:
                result = inner(*args, **kwargs)
            finally:
                self._depth -= 1
            entry["bytes"] = max(entry["bytes"], _n_bytes(result))
            self._progress.collective(self._rank, "")
            return result

        return outer

    def _describe(self, name, signature, args, kwargs):
        bound = {}
        if signature is not None:
            try:
                bound = dict(signature.bind(*args, **kwargs).arguments)
            except TypeError:
                bound = {}  # the call itself is about to say what is wrong with it
        values = list(bound.values()) or list(args) + list(kwargs.values())
        tensors = tensors_in(values)
        if self.on_tensor is not None:
            for tensor in tensors:
                self.on_tensor(tensor)
        reduces = any(word in name for word in _REDUCES)
        op = bound.get("op", bound.get("reduceOp", "sum" if reduces else ""))
        peer = -1
        for key in ("src", "dst", "group_src", "group_dst"):
            if isinstance(bound.get(key), int):
                peer = bound[key]
        file, line = self._caller()
        return {
            "op": name.lstrip("_"),
            "dtype": dtype_name(tensors[0].dtype) if tensors else "",
            "reduce_op": _reduce_name(op) if reduces else "",
            "bytes": max([_n_bytes(value) for value in values], default=0),
            "group_size": self._group_size(bound.get("group")),
            "peer": peer,
            "asynchronous": bool(bound.get("async_op", False)) or name in ("isend", "irecv"),
            "file": file,
            "line": line,
        }

    def _group_size(self, group):
        try:
            return (
                dist.get_world_size(group)
                if group is None or isinstance(group, dist.ProcessGroup)
                else len(group)
            )
        except (TypeError, ValueError, RuntimeError):
            return dist.get_world_size()

    def _caller(self):
        frame = sys._getframe(2)
        while frame is not None:
            if is_inside(frame.f_code.co_filename, self._directory):
                return os.path.relpath(frame.f_code.co_filename, self._directory), frame.f_lineno
            frame = frame.f_back
        return "", 0


def _reduce_name(op):
    if isinstance(op, str):
        return op.lower()
    for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"):
        if hasattr(dist.ReduceOp, name) and op == getattr(dist.ReduceOp, name):
            return name.lower()
    return str(op)
