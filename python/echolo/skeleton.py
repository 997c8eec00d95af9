"""Makes a problem of a function in somebody's own script.

Reads {script, function, name, directory, scratch, result, limit_s, dtypes} as JSON from standard input, writes
reference.py and problem.toml into `directory`, and answers at `result`. The function is copied with the imports and
definitions of its file that it needs; shapes of its tensor arguments are found by running it on two ranks.
"""

import ast
import json
import os
import shutil
import sys

_WORLD = 2
# Extents by name, in multiples of the world; products and quotients by the world of all of them are distinct.
_EXTENTS = (8, 12, 20)
# What functions of so many tensors usually take, most telling first: letters stand for extents.
_PATTERNS = {
    1: ["MN", "N", "MNK"],
    2: ["MK KN", "MK NK", "MN MN", "MN N", "N N", "MNK MNK", "M MN"],
    3: [
        "MK KN NK",
        "MK KN KN",
        "MK KN N",
        "MK NK KN",
        "MK NK N",
        "MN MN MN",
        "MNK MNK MNK",
        "MN N N",
        "N N N",
    ],
    4: ["MK KN KN NK", "MK KN N NK", "MK NK NK KN", "MN MN MN MN", "MNK MNK MNK MNK", "N N N N"],
}


def _setup_path():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or os.getcwd()) != here]
    sys.path.insert(0, os.path.dirname(here))


def _defines(node):
    """The names that a top-level statement gives its file."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    return set()


def _uses(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


class Script:
    def __init__(self, path, function):
        from echolo.faults import ReferenceFault, near

        self.path = path
        try:
            with open(path, encoding="utf-8") as file:
                self.text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise ReferenceFault(f"cannot read {path}: {error}") from None
        try:
            self.tree = ast.parse(self.text, path)
        except SyntaxError as error:
            raise ReferenceFault(f"not valid Python: {error.msg}", "", path, error.lineno or 0) from None
        functions = {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef)}
        if function not in functions:
            raise ReferenceFault(
                f"{os.path.basename(path)} defines no function '{function}'",
                near(function, functions) if functions else "it must be at the top level of the file",
                path,
                1,
            )
        self.function = functions[function]

    def needed(self):
        """The top-level statements that the function needs, itself included, in the order of the file."""
        wanted, done = {self.function.name}, set()
        kept = set()
        while wanted - done:
            name = (wanted - done).pop()
            done.add(name)
            for index, node in enumerate(self.tree.body):
                star = isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
                future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
                if name in _defines(node) or star or future:
                    kept.add(index)
                    if not isinstance(node, (ast.Import, ast.ImportFrom)):
                        wanted |= _uses(node)
        return [self.tree.body[index] for index in sorted(kept)]

    def source(self):
        lines = self.text.splitlines()
        blocks, previous = [], None
        for node in self.needed():
            first = min([node.lineno] + [d.lineno for d in getattr(node, "decorator_list", [])])
            imports = isinstance(node, (ast.Import, ast.ImportFrom))
            if previous is not None:
                blocks.append("" if imports and previous else "\n\n" if not imports else "\n")
            blocks.append("\n".join(lines[first - 1 : node.end_lineno]) + "\n")
            previous = imports
        out = "".join(blocks)
        if self.function.name != "solution":
            out += f"\n\nsolution = {self.function.name}\n"
        return out

    def local_modules(self, directory):
        """Files beside the script that the kept imports name, by their path."""
        found, queue = {}, list(self.needed())
        while queue:
            for node in ast.walk(queue.pop()):
                modules = []
                if isinstance(node, ast.Import):
                    modules = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                    modules = [node.module]
                for module in modules:
                    path = os.path.join(directory, module.split(".")[0] + ".py")
                    if (
                        path not in found
                        and os.path.isfile(path)
                        and os.path.abspath(path) != os.path.abspath(self.path)
                    ):
                        with open(path, encoding="utf-8") as file:
                            found[path] = file.read()
                        queue.append(ast.parse(found[path], path))
        return sorted(found)

    def arguments(self):
        """(tensor arguments, {integer argument: default expression})."""
        from echolo.faults import ReferenceFault

        args = self.function.args
        line = self.function.lineno
        if args.vararg or args.kwarg:
            raise ReferenceFault(
                f"{self.function.name}() takes * or ** arguments, so its inputs are not known",
                "give it named arguments",
                self.path,
                line,
            )
        positional = args.posonlyargs + args.args
        required = positional[: len(positional) - len(args.defaults)]
        required += [a for a, default in zip(args.kwonlyargs, args.kw_defaults) if default is None]
        tensors, numbers = [], {}
        for argument in required:
            kind = ast.unparse(argument.annotation) if argument.annotation is not None else ""
            if argument.arg in ("rank", "world", "params"):
                continue
            if argument.arg in ("world_size", "n_ranks", "tp_size"):
                numbers[argument.arg] = '"world"'
            elif kind == "int":
                numbers[argument.arg] = "4"
            elif kind in ("float", "bool", "str"):
                raise ReferenceFault(
                    f"argument '{argument.arg}' is a {kind}, which a problem cannot set",
                    "give it a default",
                    self.path,
                    argument.lineno,
                )
            else:
                tensors.append(argument.arg)
        if not tensors:
            raise ReferenceFault(f"{self.function.name}() takes no tensor", "", self.path, line)
        return tensors, numbers


def patterns(n_tensors):
    if n_tensors in _PATTERNS:
        return [pattern.split() for pattern in _PATTERNS[n_tensors]]
    return [["MK"] + ["KN"] * (n_tensors - 1), ["MN"] * n_tensors, ["MNK"] * n_tensors, ["N"] * n_tensors]


def letters_of(shapes):
    return [letter for letter in "MNK" if any(letter in shape for shape in shapes)]


def extent_text(value, names, world):
    """The expression over named extents and the world that gives `value`."""
    for name, extent in names.items():
        if value == extent:
            return f'"{name}"'
    for name, extent in names.items():
        if value * world == extent:
            return f'"{name} / world"'
        if value == extent * world:
            return f'"{name} * world"'
    for a, extent_a in names.items():
        for b, extent_b in names.items():
            if value == extent_a * extent_b:
                return f'"{a} * {b}"'
            if value == extent_a + extent_b:
                return f'"{a} + {b}"'
    return str(value)


def probe(request, script, tensors, numbers, shapes, names):
    """Runs the function on two ranks; (outputs of rank 0, None) or (None, what went wrong)."""
    from echolo.reference_runner import Run

    directory = request["directory"]
    values = {letter: extent * _WORLD for letter, extent in zip("MNK", _EXTENTS)}
    infos = [
        {"name": n, "dtype": "f32", "shape": [values[letter] for letter in shape]}
        for n, shape in zip(tensors, shapes)
    ]
    params = {names[letter]: values[letter] for letter in letters_of(shapes)}
    params.update({n: _WORLD if text == '"world"' else int(text) for n, text in numbers.items()})
    scratch = os.path.join(request["scratch"], "-".join(shapes))
    os.makedirs(scratch)
    run = Run(
        {
            "problem": {
                "name": request["name"],
                "directory": directory,
                "toml": os.path.join(directory, "problem.toml"),
                "reference": os.path.join(directory, "reference.py"),
                "params": list(params),
                "outputs": [],
                "inputs": [
                    {"name": n, "line": 0, "fill": "normal", "scale": 1.0, "replicated": False}
                    for n in tensors
                ],
            },
            "world": _WORLD,
            "limit_s": request["limit_s"],
            "oracle": False,
            "strict_oracle": False,
            "probe": True,
            "scratch": scratch,
            "result": "",
            "cases": [
                {
                    "params": params,
                    "dtype": "f32",
                    "seed": 0,
                    "call": 0,
                    "directory": scratch,
                    "inputs": [infos] * _WORLD,
                    "outputs": [[]] * _WORLD,
                }
            ],
        }
    )
    try:
        run.start()
        error = run.supervise()
    finally:
        run.stop()
    if error is not None:
        return None, error
    told = []
    for rank in range(_WORLD):
        with open(os.path.join(scratch, f"rank{rank}.json"), encoding="utf-8") as file:
            told.append(json.load(file))
    where = {"kind": "usage", "hint": "", "file": script.path, "line": script.function.lineno}
    if told[0] is None:
        return None, {**where, "message": f"{script.function.name}() does not return tensors"}
    if told[0] != told[1]:
        return None, {**where, "message": f"{script.function.name}() returns other shapes on other ranks"}
    return told[0], None


def toml_text(request, tensors, numbers, shapes, names, outputs):
    used = letters_of(shapes)
    extents = dict(zip("MNK", _EXTENTS))
    values = {names[letter]: extents[letter] * _WORLD for letter in used}
    lines = [
        f'name = "{request["name"]}"',
        f'summary = "{request["function"]}() of {os.path.basename(request["script"])}."',
        'family = "own"',
        "worlds = [2, 4, 8]",
        "dtypes = [" + ", ".join(f'"{dtype}"' for dtype in request["dtypes"]) + "]",
        "",
        "# Sizes are drawn from these ranges, and must be multiples of world wherever a shape divides by it.",
    ]
    for letter in used:
        step = f"{4 if extents[letter] % 8 else 8} * world"
        lines += [
            f"[params.{names[letter]}]",
            f'default = "{extents[letter]} * world"',
            f'draw = {{ min = "{step}", max = "24 * world", multiple_of = "{step}" }}',
            "",
        ]
    for name, text in numbers.items():
        lines += [f"[params.{name}]", f"default = {text}", ""]
    smoke = ", ".join(f'{names[letter]} = "{extents[letter]} * world"' for letter in used)
    small = ", ".join(f"{names[letter]} = 128" for letter in used)
    lines += ["[sizes]", f"smoke = {{ {smoke} }}", f"small = {{ {small} }}", "", "[curve]"]
    for m in (256, 512, 1024, 2048, 4096, 8192):
        lines.append(f"m{m} = {{ " + ", ".join(f"{names[letter]} = {m}" for letter in used) + " }")
    for name, shape in zip(tensors, shapes):
        lines += [
            "",
            "[[inputs]]",
            f'name = "{name}"',
            "shape = [" + ", ".join(f'"{names[letter]}"' for letter in shape) + "]",
            'fill = "normal"',
        ]
    for output in outputs:
        extents_text = ", ".join(extent_text(value, values, _WORLD) for value in output["shape"])
        lines += ["", "[[outputs]]", f'name = "{output["name"]}"', f"shape = [{extents_text}]"]
        if output["dtype"] != "f32":
            lines.append(f'dtype = "{output["dtype"]}"')
    return "\n".join(lines) + "\n"


def make(request):
    from echolo.faults import ReferenceFault
    from echolo.reference_runner import import_packages

    script = Script(request["script"], request["function"])
    tensors, numbers = script.arguments()
    error = import_packages()  # late, as it takes seconds
    if error is not None:
        return {"error": error}
    taken = {*tensors, *numbers}
    names = {letter: letter if letter not in taken else f"dim_{letter.lower()}" for letter in "MNK"}
    directory = request["directory"]
    with open(os.path.join(directory, "reference.py"), "w", encoding="utf-8") as file:
        file.write(script.source())
    files = ["problem.toml", "reference.py"]
    for path in script.local_modules(os.path.dirname(os.path.abspath(script.path))):
        shutil.copy(path, directory)
        files.append(os.path.basename(path))
    first = None
    for shapes in patterns(len(tensors)):
        outputs, error = probe(request, script, tensors, numbers, shapes, names)
        if outputs is None:
            first = first or error
            continue
        free = [n for n in ("y", "out", "result", "y_out", "the_output") if n not in taken]
        for index, output in enumerate(outputs):
            output["name"] = output["name"] or (free[0] if len(outputs) == 1 else f"{free[0]}{index}")
        with open(os.path.join(directory, "problem.toml"), "w", encoding="utf-8") as file:
            file.write(toml_text(request, tensors, numbers, shapes, names, outputs))
        return {"files": files, "shapes": dict(zip(tensors, shapes))}
    raise ReferenceFault(
        f"no shapes were found that {request['function']}() accepts; the first attempt: {first['message']}",
        "write problem.toml by hand: 'echolo problems new DIR' without --from gives one to start from",
        script.path,
        script.function.lineno,
    )


def main():
    _setup_path()
    from echolo.faults import ReferenceFault
    from echolo.reference_runner import write_json

    request = json.load(sys.stdin)
    os.dup2(2, 1)
    try:
        answer = make(request)
    except ReferenceFault as fault:
        answer = {"error": fault.as_dict()}
    write_json(request["result"], answer)
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(main())
