"""One rank of a reference run: draws inputs, calls solution() in-type and in float64, writes what came of it."""

import importlib.util
import inspect
import json
import os
import sys
import time
from contextlib import nullcontext

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from echolo.collectives import CollectiveWatch, tensors_in
from echolo.faults import ReferenceFault, fault_from_exception, near
from echolo.tensors import DTYPES, dtype_name, fill, generator_for, unlike, widen


class Params(dict):
    """The parameters by name, as params["M"] or params.M."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no parameter {name}; there are {', '.join(self)}") from None


class OperationWatch(TorchDispatchMode):
    """Which storages any operation other than a mere view has taken, and the FLOPs of all operations.

    FlopCounterMode of torch.utils.flop_counter counts by the same table, but its first use in a process imports the
    whole of torch's compiler, seconds in every rank.
    """

    def __init__(self):
        super().__init__()
        self.seen = set()
        self.flops = 0

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # nothing is compiled here, and asking for the contrary imports the compiler

    def note(self, tensor):
        try:
            self.seen.add(tensor.untyped_storage().data_ptr())
        except (NotImplementedError, RuntimeError):
            pass  # tensors without storage are no inputs of ours

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not getattr(func, "is_view", False):
            for tensor in tensors_in(list(args) + list(kwargs.values())):
                self.note(tensor)
        count = flop_registry.get(getattr(func, "_overloadpacket", None))
        if count is None and hasattr(func, "decompose"):
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        out = func(*args, **kwargs)
        if count is not None:
            self.flops += count(*args, **kwargs, out_val=out)
        return out


class Rank:
    def __init__(self, request, rank, progress, barrier):
        self.request = request
        self.problem = request["problem"]
        self.world = request["world"]
        self.rank = rank
        self.progress = progress
        self._barrier = barrier
        self.watch = CollectiveWatch(rank, self.problem["directory"], progress)
        self.flops = {}  # by parameters and dtype

    def run(self, store_port, listen_fd):
        self.progress.begin(self.rank, "starting")
        self.watch.install()
        module = self._import_reference()
        self.module = module
        self.solution = self._function(module, "solution", required=True)
        self.make_inputs = self._function(module, "make_inputs", required=False)
        self.arguments = self._check_signature()
        store = dist.TCPStore(
            "127.0.0.1",
            store_port,
            self.world,
            is_master=self.rank == 0,
            wait_for_workers=False,
            **({"master_listen_fd": listen_fd, "use_libuv": True} if self.rank == 0 else {}),
        )
        dist.init_process_group("gloo", store=store, rank=self.rank, world_size=self.world)
        for number, case in enumerate(self.request["cases"]):
            self._case(number, case)
        self.progress.begin(self.rank, "done")
        self._barrier.wait()

    def _import_reference(self):
        directory = self.problem["directory"]
        path = self.problem["reference"]
        # A cached copy of the person's own file could be older than the file within the clock's resolution.
        sys.dont_write_bytecode = True
        sys.path.insert(0, directory)
        spec = importlib.util.spec_from_file_location("reference", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["reference"] = module
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            raise fault_from_exception(error, "reference.py", directory) from None
        return module

    def _function(self, module, name, required):
        function = getattr(module, name, None)
        if function is None and not required:
            return None
        if not callable(function):
            functions = [n for n, value in vars(module).items() if inspect.isfunction(value)]
            raise ReferenceFault(
                f"reference.py defines no function {name}()",
                near(name, functions) if functions else f"define {name}(...), plain torch.distributed code",
                self.problem["reference"],
                1,
            )
        return function

    def _line(self, function):
        code = getattr(inspect.unwrap(function), "__code__", None)
        return code.co_firstlineno if code is not None else 1

    def _check_signature(self):
        """What each argument of solution() is bound to: every input must be one, and nothing may be unknown."""
        reference = self.problem["reference"]
        inputs = {spec["name"]: spec for spec in self.problem["inputs"]}
        if not inputs and self.make_inputs is None:
            raise ReferenceFault(
                "there are no inputs: problem.toml declares none and reference.py defines no make_inputs()",
                "declare [[inputs]], or define make_inputs(rank, world, params, generator)",
                self.problem["toml"],
                1,
            )
        arguments = inspect.signature(self.solution).parameters
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in arguments.values()):
            raise ReferenceFault(
                "solution() must name its arguments, without * or **",
                "",
                reference,
                self._line(self.solution),
            )
        extras = {"rank", "world", "params", *self.problem["params"]}
        if inputs:
            for name, parameter in arguments.items():
                if name in inputs or name in extras or parameter.default is not parameter.empty:
                    continue
                raise ReferenceFault(
                    f"solution() takes '{name}', which is no input or parameter of problem.toml",
                    near(name, [*inputs, *sorted(extras)]),
                    reference,
                    self._line(self.solution),
                )
            for name, spec in inputs.items():
                if name not in arguments:
                    raise self._unused(
                        name, spec["line"], f"solution({', '.join(arguments)}) has no such argument"
                    )
        return list(arguments)

    def _unused(self, name, line, why):
        return ReferenceFault(
            f"input '{name}' is never used by the reference: {why}",
            "remove the input from problem.toml, or use it in solution()",
            self.problem["toml"],
            line,
        )

    def _draw_inputs(self, case):
        seed, call = case["seed"], case["call"]
        if self.make_inputs is None:
            drawn = {}
            for info, spec in zip(case["inputs"][self.rank], self.problem["inputs"], strict=True):
                who = "all" if spec["replicated"] else self.rank
                drawn[spec["name"]] = fill(info, spec, generator_for(seed, call, who, spec["name"]))
            return drawn
        extra = {}
        if "shared_generator" in inspect.signature(self.make_inputs).parameters:
            extra["shared_generator"] = generator_for(seed, call, "all", "make_inputs")
        generator = generator_for(seed, call, self.rank, "make_inputs")
        params = Params(case["params"])
        if "dtype" in inspect.signature(self.make_inputs).parameters:
            extra["dtype"] = DTYPES[case["dtype"]]
        try:
            drawn = self.make_inputs(self.rank, self.world, params, generator, **extra)
        except BaseException as error:
            raise fault_from_exception(error, "make_inputs()", self.problem["directory"]) from None
        return self._check_made(case, drawn)

    def _check_made(self, case, drawn):
        path, line = self.problem["reference"], self._line(self.make_inputs)
        if not isinstance(drawn, dict) or not drawn:
            raise ReferenceFault("make_inputs() must return a dictionary of tensors by name", "", path, line)
        for name, tensor in drawn.items():
            if not isinstance(tensor, torch.Tensor) or tensor.dtype not in DTYPES.values():
                raise ReferenceFault(
                    f"make_inputs() returned something else than a tensor as '{name}'", "", path, line
                )
        declared = {info["name"]: info for info in case["inputs"][self.rank]}
        if not declared:
            unknown = [
                a
                for a in self.arguments
                if a not in drawn and a not in {"rank", "world", "params", *self.problem["params"]}
            ]
            if unknown:
                raise ReferenceFault(
                    f"solution() takes '{unknown[0]}', which make_inputs() does not return",
                    near(unknown[0], drawn),
                    self.problem["reference"],
                    self._line(self.solution),
                )
            for name in drawn:
                if name not in self.arguments:
                    fault = self._unused(name, line, "solution() has no such argument")
                    fault.file = path
                    fault.hint = "leave it out of make_inputs(), or use it in solution()"
                    raise fault
            return drawn
        if set(drawn) != set(declared):
            raise ReferenceFault(
                f"make_inputs() returned {', '.join(drawn)}, problem.toml declares {', '.join(declared)}",
                "",
                path,
                line,
            )
        for name, info in declared.items():
            tensor = drawn[name]
            if list(tensor.shape) != info["shape"] or tensor.dtype != DTYPES[info["dtype"]]:
                raise ReferenceFault(
                    f"make_inputs() made '{name}' as {dtype_name(tensor.dtype)} {list(tensor.shape)} "
                    f"on rank {self.rank}, "
                    f"problem.toml declares {info['dtype']} {info['shape']}",
                    "",
                    path,
                    line,
                )
        return {name: drawn[name] for name in declared}

    def _call(self, number, case, tensors, phase, mode=None):
        """solution() on copies of `tensors`; (what it returned, the collectives it issued, seconds)."""
        values = {**case["params"], "rank": self.rank, "world": self.world, "params": Params(case["params"])}
        copies = {name: tensor.clone() for name, tensor in tensors.items()}
        arguments = {
            name: copies.get(name, values.get(name))
            for name in self.arguments
            if name in copies or name in values
        }
        self.watch.on_tensor = mode.note if mode is not None else None
        self._barrier.wait()
        self.progress.begin(self.rank, phase, number)
        self.watch.recording = []
        began = time.perf_counter()
        try:
            with mode or nullcontext():
                returned = self.solution(**arguments)
        except BaseException as error:
            raise fault_from_exception(error, "solution()", self.problem["directory"]) from None
        finally:
            seconds = time.perf_counter() - began
            recorded, self.watch.recording = self.watch.recording, None
        self.progress.begin(self.rank, "returned", number)
        self._barrier.wait()
        self.progress.begin(self.rank, "between", number)
        pointers = {name: tensor.untyped_storage().data_ptr() for name, tensor in copies.items()}
        used = {n for n, p in pointers.items() if mode is None or p in mode.seen or tensors[n].numel() == 0}
        return returned, recorded, seconds, used

    def _as_outputs(self, case, returned, wide):
        """The outputs in order, checked against problem.toml; data-dependent ones padded to their bound."""
        specs = self.problem["outputs"]
        names = [spec["name"] for spec in specs]
        path, line = self.problem["reference"], self._line(self.solution)
        if isinstance(returned, torch.Tensor):
            returned = (returned,)
        if isinstance(returned, dict):
            if set(returned) != set(names):
                raise ReferenceFault(
                    f"solution() returned {', '.join(map(str, returned)) or 'an empty dictionary'}, "
                    f"problem.toml declares {', '.join(names)}",
                    "",
                    path,
                    line,
                )
            returned = tuple(returned[name] for name in names)
        if not isinstance(returned, (tuple, list)) or not all(isinstance(t, torch.Tensor) for t in returned):
            what = "nothing" if returned is None else f"a {type(returned).__name__}"
            raise ReferenceFault(
                f"solution() returned {what}, not the declared outputs {', '.join(names)}",
                "return a tensor, a tuple in the order of [[outputs]], or a dictionary",
                path,
                line,
            )
        if len(returned) != len(names):
            raise ReferenceFault(
                f"solution() returned {len(returned)} tensors, problem.toml declares {len(names)}: "
                f"{', '.join(names)}",
                "",
                path,
                line,
            )
        by_name = {name: tensor.detach() for name, tensor in zip(names, returned)}
        outputs, n_rows = {}, []
        for info, spec in zip(case["outputs"][self.rank], specs, strict=True):
            tensor, rows = self._check_output(info, spec, by_name, wide)
            outputs[spec["name"]] = tensor.contiguous().clone()
            n_rows.append(rows)
        return outputs, n_rows

    def _check_output(self, info, spec, by_name, wide):
        name = spec["name"]
        tensor = by_name[name]
        toml, line = self.problem["toml"], spec["line"]
        declared = DTYPES[info["dtype"]]
        if wide and tensor.dtype.is_floating_point and declared.is_floating_point:
            if self.request["strict_oracle"] and tensor.dtype != torch.float64:
                raise ReferenceFault(
                    f"float64 inputs give output '{name}' as {dtype_name(tensor.dtype)}, "
                    "so there is no oracle in float64",
                    "take dtypes from the inputs, as in dtype=a.dtype, and convert nothing to a fixed type",
                    self.problem["reference"],
                    self._line(self.solution),
                )
            tensor = tensor.to(torch.float64)
        elif tensor.dtype != declared:
            raise ReferenceFault(
                f"output '{name}' is {dtype_name(tensor.dtype)} on rank {self.rank}, "
                f"problem.toml declares {info['dtype']}",
                "",
                toml,
                line,
            )
        shape, bound = list(tensor.shape), info["shape"]
        if not spec["count"]:
            if shape != bound:
                raise ReferenceFault(
                    f"output '{name}' has shape {shape} on rank {self.rank}, problem.toml declares "
                    f"{bound} ({spec['shape_text']})",
                    "",
                    toml,
                    line,
                )
            return tensor, -1
        count = by_name[spec["count"]]
        if count.numel() != 1:
            raise ReferenceFault(f"the count '{spec['count']}' must hold one element", "", toml, line)
        rows = int(count.item())
        if rows < 0 or rows > bound[0]:
            raise ReferenceFault(
                f"output '{name}' has {rows} valid rows on rank {self.rank}, its bound is {bound[0]}",
                "",
                toml,
                line,
            )
        if not shape or shape[1:] != bound[1:] or shape[0] not in (rows, bound[0]):
            raise ReferenceFault(
                f"output '{name}' has shape {shape} on rank {self.rank}, problem.toml and its count "
                f"ask for {[rows, *bound[1:]]}",
                "",
                toml,
                line,
            )
        padded = torch.zeros(bound, dtype=tensor.dtype)
        padded[:rows] = tensor[:rows]
        return padded, rows

    def _tell_outputs(self, returned, prefix):
        """For a problem whose outputs are not declared yet: what they are, or null where they are no tensors."""
        single = isinstance(returned, torch.Tensor)
        if isinstance(returned, dict):
            named = list(returned.items())
        else:
            named = [("", tensor) for tensor in ([returned] if single else list(returned or ()))]
        good = bool(named) and all(
            isinstance(t, torch.Tensor) and t.dtype in DTYPES.values() for _, t in named
        )
        outputs = (
            [{"name": str(n), "dtype": dtype_name(t.dtype), "shape": list(t.shape)} for n, t in named]
            if good
            else None
        )
        with open(prefix + ".json", "w", encoding="utf-8") as file:
            json.dump(outputs, file)

    def _find_unused(self, number, case, inputs, used, outputs):
        """An input no operation was seen to take is only called unused where changing it changes nothing."""
        flags = torch.tensor([int(name in used) for name in inputs], dtype=torch.int64)
        self._agree(flags, dist.ReduceOp.MAX)
        for name, flag in zip(inputs, flags.tolist()):
            if flag:
                continue
            changed = dict(inputs)
            changed[name] = unlike(inputs[name])
            differs = torch.tensor([1])
            try:
                returned, _, _, _ = self._call(number, case, changed, "solution")
                again, _ = self._as_outputs(case, returned, wide=False)
                same = all(_same(again[output], outputs[output]) for output in outputs)
                differs[0] = int(not same)
            except ReferenceFault:
                return  # it could not take the other values, so it uses them
            self._agree(differs, dist.ReduceOp.MAX)
            if differs.item() == 0:
                spec = {spec["name"]: spec for spec in self.problem["inputs"]}.get(name)
                line = spec["line"] if spec else self._line(self.solution)
                fault = self._unused(name, line, "no operation takes it and other values change nothing")
                if spec is None:
                    fault.file = self.problem["reference"]
                raise fault

    def _agree(self, tensor, op):
        self.watch.original["all_reduce"](tensor, op=op)

    def _case(self, number, case):
        self.progress.begin(self.rank, "inputs", number)
        inputs = self._draw_inputs(case)
        prefix = os.path.join(case["directory"], f"rank{self.rank}")
        key = (json.dumps(case["params"], sort_keys=True), case["dtype"])
        watched = key not in self.flops
        mode = OperationWatch() if watched else None
        with_oracle = self.request["oracle"]
        # Watching costs time, so it is done to the oracle's call where there is one.
        returned, collectives, seconds, used = self._call(
            number, case, inputs, "solution", None if with_oracle else mode
        )
        if self.request.get("probe"):
            return self._tell_outputs(returned, prefix)
        outputs, n_rows = self._as_outputs(case, returned, wide=False)
        del returned
        save_file({n: t.contiguous().clone() for n, t in inputs.items()}, prefix + ".inputs.safetensors")
        save_file(outputs, prefix + ".reference.safetensors")
        if with_oracle:
            returned, _, _, used = self._call(number, case, widen(inputs), "solution in float64", mode)
            oracle, oracle_rows = self._as_outputs(case, returned, wide=True)
            del returned
            if oracle_rows != n_rows:
                raise ReferenceFault(
                    "the in-type reference and the float64 oracle disagree about how many rows are valid",
                    "let counts depend on integer inputs only",
                    self.problem["reference"],
                    self._line(self.solution),
                )
            save_file(oracle, prefix + ".oracle.safetensors")
        if watched:
            self.flops[key] = int(mode.flops)
            self._find_unused(number, case, inputs, used, outputs)
        result = {
            "inputs": [
                {"name": n, "dtype": dtype_name(t.dtype), "shape": list(t.shape)} for n, t in inputs.items()
            ],
            "outputs": [
                {"name": n, "dtype": dtype_name(t.dtype), "shape": list(t.shape)} for n, t in outputs.items()
            ],
            "n_rows": n_rows,
            "collectives": collectives,
            "flops": self.flops[key],
            "seconds": seconds,
        }
        # Whoever watches takes the case away as soon as the files of all ranks stand there under their names.
        with open(prefix + ".json.new", "w", encoding="utf-8") as file:
            json.dump(result, file)
        os.replace(prefix + ".json.new", prefix + ".json")


def _same(a, b):
    return (
        torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))
        if a.dim()
        else bool(torch.equal(a, b))
    )
