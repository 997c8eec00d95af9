"""One rank of a problem's reference on GPUs (NCCL and cuBLAS): makes inputs, oracle and noise, compares what
a candidate wrote, and times the baselines. Commands arrive on stdin, one a line, answers leave on stdout.

  case PROBLEM DTYPE SETS KEY=VALUE,...  -> ok NOISE        inputs and the case file lie in the folder
  verify SHIFT                           -> ok RATIO WRONG UNWRITTEN   RATIO: worst error over allowed error
  variants                               -> variants NAME...
  time VARIANT eager|graph CALLS FLUSH   -> times T1 T2 ...  microseconds of each call
  quit
"""

import importlib.util
import math
import os
import sys
import tomllib

import torch
import torch.distributed as dist

from echolo.tensors import DTYPES, fill, generator_for, widen

CODES = {name: code for code, name in enumerate(DTYPES)}  # those of echolo::DType, in its order
FLUSH_BYTES = 128 << 20
# src/problem/tolerance.cpp has the same: twice the unit roundoff.
FLOORS = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-10, torch.float32: 2.0**-23, torch.float64: 2.0**-44}
TOLERANCE_FACTOR = 4.0


def evaluate(expression, names):
    """An expression of problem.toml: whole numbers, and `/` must divide exactly."""
    if isinstance(expression, int):
        return expression
    text = str(expression).replace("&&", " and ").replace("||", " or ").replace("//", "\0").replace("/", "//")
    helpers = {"min": min, "max": max, "ceil_div": lambda a, b: -(-a // b)}
    return int(eval(text.replace("\0", "//"), {"__builtins__": {}}, {**helpers, **names}))


class Rank:
    def __init__(self, rank, world, problems, folder):
        self.rank, self.world, self.problems, self.folder = rank, world, problems, folder
        self.flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
        self.graphs = {}
        self.symmetric = None

    def path(self, kind, index, tensor):
        return os.path.join(self.folder, f"{kind}.{index}.{self.rank}.{tensor}")

    # --- A case ---

    def case(self, problem, dtype, sets, settings=""):
        self.graphs.clear()
        self.sets = self.expected = None
        torch.cuda.empty_cache()
        directory = os.path.join(self.problems, problem)
        with open(os.path.join(directory, "problem.toml"), "rb") as file:
            self.toml = tomllib.load(file)
        self.params = {k: int(v) for k, v in (one.split("=") for one in settings.split(",") if one)}
        for name, spec in self.toml.get("params", {}).items():
            if name not in self.params:
                self.params[name] = evaluate(spec["default"], {"world": self.world, **self.params})
        self.problem, self.dtype, self.n_sets = problem, dtype, int(sets)
        spec = importlib.util.spec_from_file_location("reference", os.path.join(directory, "reference.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.solution = module.solution
        self.sets = [self.inputs(s) for s in range(self.n_sets)]
        self.expected, noise, exact = [], 0.0, True
        for tensors in self.sets:
            oracle = self.outputs(self.solution(**{n: t.clone() for n, t in widen(tensors).items()}))
            reference = self.outputs(self.solution(**{n: t.clone() for n, t in tensors.items()}))
            for ours, truth in zip(reference, oracle):
                scale = self.scale(truth)
                noise = max(noise, ((ours.double() - truth).abs() / scale).max().item())
                exact = exact and bool((ours.double() == truth).all())
            self.shapes = [(t.dtype, list(t.shape)) for t in reference]
            self.expected.append(oracle)
        both = torch.tensor([noise, 0.0 if exact else 1.0], device="cuda", dtype=torch.float64)
        dist.all_reduce(both, op=dist.ReduceOp.MAX)
        self.noise, self.exact = both[0].item(), both[1].item() == 0.0
        self.write_case()
        return f"ok {self.noise:.3g}{' exact' if self.exact else ''}"

    def inputs(self, index):
        names = {"rank": self.rank, "world": self.world, **self.params}
        out = {}
        for position, spec in enumerate(self.toml["inputs"]):
            info = {
                "dtype": spec.get("dtype", self.dtype),
                "shape": [evaluate(e, names) for e in spec["shape"]],
                "low": evaluate(spec.get("low", 0), names),
                "high": evaluate(spec.get("high", 1), names),
            }
            who = "all" if spec.get("replicated") else self.rank
            how = {"fill": spec.get("fill", "normal"), "scale": spec.get("scale", 1)}
            tensor = fill(info, how, generator_for(1, index, who, spec["name"]))
            tensor.contiguous().view(torch.uint8).numpy().tofile(self.path("in", index, position))
            out[spec["name"]] = tensor.cuda()
        return out

    def outputs(self, returned):
        if isinstance(returned, dict):
            returned = [returned[spec["name"]] for spec in self.toml["outputs"]]
        return [t.contiguous() for t in (returned if isinstance(returned, (list, tuple)) else [returned])]

    def write_case(self):
        lines = [f"problem {self.problem}", f"folder {self.folder}", f"dtype {CODES[self.dtype]}"]
        lines += [f"param {name} {value}" for name, value in self.params.items()]
        lines.append(f"sets {self.n_sets}")
        code = {dtype: CODES[name] for name, dtype in DTYPES.items()}
        for kind, shapes in (
            ("in", [(t.dtype, list(t.shape)) for t in self.sets[0].values()]),
            ("out", self.shapes),
        ):
            lines += [" ".join([kind, str(code[dtype]), *map(str, dims)]) for dtype, dims in shapes]
        with open(os.path.join(self.folder, f"case.{self.rank}"), "w") as file:
            file.write("\n".join(lines) + "\n")

    @staticmethod
    def scale(truth):
        return truth.abs().clamp_min(truth.square().mean().sqrt().item()).clamp_min(1e-300)

    def verify(self, shift):
        worst, wrong, unwritten = 0.0, 0, 0
        for index in range(self.n_sets):
            truths = self.expected[(index + int(shift)) % self.n_sets]
            for position, (truth, (dtype, dims)) in enumerate(zip(truths, self.shapes)):
                size = math.prod(dims) * dtype.itemsize
                raw = torch.from_file(self.path("out", index, position), size=size, dtype=torch.uint8)
                got = raw.cuda().view(dtype).reshape(dims).double()
                error = (got - truth).abs() / self.scale(truth)
                allowed = 0.0 if self.exact else max(TOLERANCE_FACTOR * self.noise, FLOORS[dtype])
                bad = ~(error <= allowed)
                wrong += int(bad.sum())
                unwritten += int(got.isnan().sum())
                top = error.nan_to_num(nan=math.inf).max().item()
                worst = max(worst, top / allowed if allowed else (0.0 if top == 0 else math.inf))
        return f"ok {worst:.3f} {wrong} {unwritten}"

    # --- Time ---

    def baselines(self):
        """By name, functions of a set of inputs. The reference itself comes first."""
        out = {"nccl": lambda tensors: self.solution(**tensors)}
        if self.problem == "ag_gemm" and self.world == 1:  # nothing to gather: the product alone
            out["cublas"] = lambda tensors: tensors["a"] @ tensors["b"]
        if self.problem == "all_reduce" and self.two_gpus():
            import torch.distributed._symmetric_memory as symmetric

            x = next(iter(self.sets[0].values()))
            buffer = symmetric.empty(x.numel(), dtype=x.dtype, device=x.device)
            symmetric.rendezvous(buffer, dist.group.WORLD.group_name)
            group = dist.group.WORLD.group_name

            def one_shot(tensors):
                buffer.copy_(tensors["x"])
                return torch.ops.symm_mem.one_shot_all_reduce(buffer, "sum", group)

            def two_shot(tensors):
                buffer.copy_(tensors["x"])
                torch.ops.symm_mem.two_shot_all_reduce_(buffer, "sum", group)
                return buffer.clone()

            out["symm1"], out["symm2"] = one_shot, two_shot
        if self.problem in {"ag_gemm", "gemm_rs"} and self.world > 1 and self.two_gpus():
            import torch.distributed._symmetric_memory  # noqa: F401  registers the operators

            group, fused = dist.group.WORLD.group_name, torch.ops.symm_mem
            if self.problem == "ag_gemm":
                out["fused"] = lambda tensors: fused.fused_all_gather_matmul(
                    tensors["a"], [tensors["b"]], 0, group
                )[1]
            else:
                out["fused"] = lambda tensors: fused.fused_matmul_reduce_scatter(
                    tensors["a"], tensors["b"], "sum", 0, group
                )
        return out

    def two_gpus(self):
        return torch.cuda.device_count() >= self.world

    def agreed(self, yes):
        """Whether every rank says so."""
        verdict = torch.tensor([1 if yes else 0], device="cuda")
        dist.all_reduce(verdict, op=dist.ReduceOp.MIN)
        return bool(verdict.item())

    def capturable(self, name, function):
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                function(self.sets[0])
        except Exception as fault:
            print(f"baseline {name} in a graph: {fault}", file=sys.stderr)
            return False
        return True

    def variants(self):
        """Those that give the right answer here; the others are named on stderr. `NAME/eager` cannot be
        captured in a graph."""
        self.candidates, good = self.baselines(), []
        for name, function in list(self.candidates.items()):
            try:
                got = self.outputs(function(self.sets[0]))
                pairs = zip(got, self.expected[0])
                error = max(((a.double() - b).abs() / self.scale(b)).max().item() for a, b in pairs)
                right = error <= max(TOLERANCE_FACTOR * self.noise, FLOORS.get(got[0].dtype, 0))
                torch.cuda.synchronize()
            except Exception as fault:
                print(f"baseline {name}: {fault}", file=sys.stderr)
                right = False
            if not self.agreed(right):
                continue
            if name == "nccl" or self.agreed(self.capturable(name, function)):
                good.append(name)
            else:
                self.candidates[f"{name}/eager"] = function
                good.append(f"{name}/eager")
        return "variants " + " ".join(good)

    def run_calls(self, function, events, flush):
        for index, (before, after) in enumerate(events):
            if flush:
                self.flush.zero_()
            before.record()
            function(self.sets[index % self.n_sets])
            after.record()

    def time(self, variant, mode, calls, flush):
        function, calls, flush = self.candidates[variant], int(calls), flush == "1"
        if mode == "eager":
            events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(calls)]
            self.run_calls(function, events, flush)
        else:
            key = (variant, calls, flush)
            if key not in self.graphs:
                self.graphs.pop(next(iter(self.graphs), None), None) if len(self.graphs) > 5 else None
                events = [
                    [torch.cuda.Event(enable_timing=True, external=True) for _ in range(2)]
                    for _ in range(calls)
                ]
                function(self.sets[0])
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                    self.run_calls(function, events, flush)
                self.graphs[key] = (graph, events)
            graph, events = self.graphs[key]
            graph.replay()
        torch.cuda.synchronize()
        return "times " + " ".join(f"{a.elapsed_time(b) * 1000:.3f}" for a, b in events)


def main():
    rank, world, device, rendezvous, problems, folder = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.cuda.set_device(int(device))
    dist.init_process_group(
        "nccl", init_method=f"file://{rendezvous}", rank=int(rank), world_size=int(world)
    )
    worker = Rank(int(rank), int(world), problems, folder)
    dist.all_reduce(torch.zeros(1, device="cuda"))
    torch.cuda.synchronize()
    nccl = ".".join(map(str, torch.cuda.nccl.version()))
    print(f"ready torch {torch.__version__} nccl {nccl}", file=answers, flush=True)
    for line in sys.stdin:
        verb, *rest = line.split()
        if verb == "quit":
            break
        try:
            if verb not in {"case", "verify", "variants", "time"}:
                raise ValueError(f"unknown command {verb}")
            answer = getattr(worker, verb)(*rest)
        except Exception as fault:
            answer = "error " + " ".join(f"{type(fault).__name__}: {fault}".split())
        print(answer, file=answers, flush=True)
    answers.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
