"""Runs a problem's reference on gloo, one process a rank, for many cases at once.

Reads one request as JSON from standard input and writes one answer as JSON to the path that the request names. The
importing of torch is paid once: the ranks are forked from this process. Exit code 0: done; 1: the answer says what is
wrong with the problem; 3: something of the machine's failed.
"""

import ctypes
import faulthandler
import json
import math
import os
import re
import signal
import socket
import sys
import time
import traceback

_PR_SET_PDEATHSIG = 1
_GRACE = 0.5  # seconds that other ranks get to report their own fault after the first one has
_POLL = 0.02
_START_LIMIT = 60.0  # seconds for importing reference.py and connecting
_LARGE = 1 << 20  # elements of a tensor


def _python_path():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or os.getcwd()) != here]
    sys.path.insert(0, os.path.dirname(here))


def write_json(path, value):
    scratch = f"{path}.tmp.{os.getpid()}"
    with open(scratch, "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(scratch, path)


class Run:
    def __init__(self, request):
        self.request = request
        self.world = request["world"]
        self.scratch = request["scratch"]
        self.directory = request["problem"]["directory"]
        self.children = {}  # rank: process id
        self.exited = {}  # rank: wait status

    def _path(self, rank, what):
        return os.path.join(self.scratch, f"rank{rank}.{what}")

    def start(self):
        import multiprocessing

        from echolo.progress import Progress

        self.progress = Progress(self.world)
        self.barrier = multiprocessing.get_context("fork").Barrier(self.world)
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(self.world + 16)
        port = listener.getsockname()[1]
        parent = os.getpid()
        for rank in range(self.world):
            self.progress.begin(rank, "starting")
            pid = os.fork()
            if pid == 0:
                self._child(rank, port, listener.fileno(), parent)
            self.children[rank] = pid
        listener.close()

    def _child(self, rank, port, listen_fd, parent):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(3)
        code = 1
        try:
            import torch

            from echolo.faults import ReferenceFault
            from echolo.reference_rank import Rank

            where = open(self._path(rank, "stack"), "w", encoding="utf-8")
            faulthandler.register(signal.SIGUSR1, file=where, all_threads=True)
            torch.set_num_threads(self._n_threads())
            if rank != 0:
                os.close(listen_fd)
            try:
                Rank(self.request, rank, self.progress, self.barrier).run(port, listen_fd)
                code = 0
            except ReferenceFault as fault:
                self._tell(rank, fault.as_dict())
            except BaseException as error:
                self._tell(rank, self._own_fault(rank, error))
            if code != 0:
                # Leaving would make the other ranks fail for a reason that is not theirs.
                self.progress.begin(rank, "failed")
                sys.stdout.flush()
                sys.stderr.flush()
                signal.pause()
        finally:
            os._exit(code)

    def _own_fault(self, rank, error):
        """What went wrong in the runner itself rather than in the person's code."""
        fault = {"kind": "machine", "hint": "", "file": "", "line": 0}
        if "No space left" in str(error):
            return {
                **fault,
                "message": f"the disk is full: tensors of rank {rank} cannot be written to {self.scratch}",
                "hint": "free some disk space, or give another folder with --store",
            }
        full = "".join(traceback.format_exception(error))
        return {**fault, "message": f"the reference runner failed on rank {rank}: {error}\n{full}"}

    def _tell(self, rank, fault):
        try:
            write_json(self._path(rank, "fault"), {**fault, "time": time.monotonic()})
        except OSError:
            pass  # the parent says so where a failed rank has left nothing

    def _n_threads(self):
        """One where it is enough, so that results do not depend on how many cores a machine has."""
        most = 0
        for case in self.request["cases"]:
            for info in case["inputs"][0] + case["outputs"][0]:
                most = max(most, math.prod(info["shape"]))
        return 1 if most < _LARGE else max(1, (os.cpu_count() or 1) // self.world)

    def supervise(self):
        """Waits for all ranks; the answer's error, or None."""
        first_fault = None
        while len(self.exited) < self.world:
            for rank, pid in self.children.items():
                if rank not in self.exited:
                    done, status = os.waitpid(pid, os.WNOHANG)
                    if done:
                        self.exited[rank] = status
            died = {rank: status for rank, status in self.exited.items() if status != 0}
            if died:
                return self._died(died)
            states = {rank: self.progress.read(rank) for rank in self.children}
            failed = [rank for rank, (state, _) in states.items() if state.get("phase") == "failed"]
            if failed:
                now = time.monotonic()
                first_fault = first_fault or now
                if len(failed) == self.world or now - first_fault > _GRACE:
                    return self._faults(failed)
            else:
                late = [rank for rank, (state, began) in states.items() if self._is_late(state, began)]
                if late:
                    return self._hang(states)
            time.sleep(_POLL)
        return None

    def _is_late(self, state, began):
        phase = state.get("phase", "starting")
        if not phase.startswith(("solution", "starting", "inputs")):
            return False
        limit = self.request["limit_s"]
        # Importing and connecting happen once, and a short limit for calls says nothing about them.
        return time.monotonic() - began > (max(limit, _START_LIMIT) if phase == "starting" else limit)

    def _faults(self, failed):
        faults = []
        for rank in failed:
            try:
                with open(self._path(rank, "fault"), encoding="utf-8") as file:
                    faults.append((rank, json.load(file)))
            except OSError:
                untold = OSError("No space left on device") if _is_full(self.scratch) else OSError("it left no reason")
                return self._own_fault(rank, untold)
        # A rank whose peer went away reports gloo's view of that; the first to fail knows the cause.
        earliest = min(faults, key=lambda entry: entry[1]["time"])[1]
        place = (earliest.get("file"), earliest.get("line"))
        # Of ranks that failed at that place the lowest speaks, so that the message doesn't depend on who was quicker.
        first = next(fault for _, fault in sorted(faults, key=lambda entry: entry[0])
                     if (fault.get("file"), fault.get("line")) == place)
        for _, fault in faults:
            fault.pop("time")
        same = [rank for rank, fault in faults if fault["message"] == first["message"]]
        if " raised " in first["message"].split("\n", 1)[0]:
            head, _, rest = first["message"].partition("\n")
            first["message"] = f"{head} on {_ranks(same)}\n{rest}"
        return first

    def _died(self, died):
        rank, status = min(died.items())
        how = (
            f"was killed by signal {os.WTERMSIG(status)} ({signal.Signals(os.WTERMSIG(status)).name})"
            if os.WIFSIGNALED(status)
            else f"left with exit code {os.WEXITSTATUS(status)}"
        )
        state, _ = self.progress.read(rank)
        hint = "memory may have run out: try a smaller size" if status == signal.SIGKILL else ""
        return {
            "kind": "usage",
            "message": f"rank {rank} of the reference {how}, {_doing(state)}",
            "hint": hint,
            "file": self.request["problem"]["reference"],
            "line": 0,
        }

    def _hang(self, states):
        alive = [pid for rank, pid in self.children.items() if rank not in self.exited]
        for pid in alive:
            os.kill(pid, signal.SIGUSR1)
        time.sleep(0.2)
        lines, first = [], ("", 0)
        for rank, (state, began) in states.items():
            file, line = self._where(rank)
            where = f" at {os.path.basename(file)}:{line}" if file else ""
            if file and not first[0]:
                first = (file, line)
            lines.append(f"  rank {rank}: {_doing(state)}{where}")
        limit = self.request["limit_s"]
        if any(state.get("phase", "starting") == "starting" for state, _ in states.values()):
            limit = max(limit, _START_LIMIT)
        return {
            "kind": "usage",
            "file": first[0] or self.request["problem"]["reference"],
            "line": first[1],
            "message": f"the reference did not finish within {limit:g} s\n" + "\n".join(lines),
            "hint": "every rank must issue the same collectives in the same order; --timeout raises the limit",
        }

    def _where(self, rank):
        try:
            with open(self._path(rank, "stack"), encoding="utf-8") as file:
                text = file.read()
        except OSError:
            return "", 0
        from echolo.faults import is_inside

        for file, line in re.findall(r'File "([^"]+)", line (\d+)', text):
            if is_inside(file, self.directory):
                return file, int(line)
        return "", 0

    def stop(self):
        for rank, pid in self.children.items():
            if rank not in self.exited:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _is_full(directory):
    state = os.statvfs(directory)
    return state.f_bavail * state.f_frsize < 1 << 16 or (state.f_files > 0 and state.f_favail == 0)


def _ranks(ranks):
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return "ranks " + ", ".join(map(str, ranks))


def _doing(state):
    phase = state.get("phase", "starting")
    if "inside" in state:
        return f"in {state['inside']}, number {state['issued']} of its collectives"
    if phase == "starting":
        return "importing reference.py or connecting"
    if phase == "inputs":
        return "making inputs"
    if phase == "returned":
        return "has returned from solution()"
    if phase in ("between", "done"):
        return "outside of solution()"
    if state.get("after"):
        return f"in solution(), after {state['after']}, number {state['issued']} of its collectives"
    return "in solution(), before its first collective"


def import_packages():
    """Imports, before any rank is forked, what all ranks need; the answer's error, or None."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    os.environ["TORCH_CPP_LOG_LEVEL"] = "FATAL"
    try:
        import echolo.reference_rank  # noqa: F401
    except ImportError as error:
        return {
            "kind": "machine",
            "message": f"{sys.executable} cannot import what a reference needs: {error}",
            "hint": "./run.sh makes the environment anew",
            "file": "",
            "line": 0,
        }
    return None


def main():
    _python_path()
    request = json.load(sys.stdin)
    answer = {}
    error = import_packages()
    if error is None:
        import torch

        # Whatever a reference prints is for people; standard output stays clean.
        os.dup2(2, 1)
        answer["versions"] = {"python": sys.version.split()[0], "torch": torch.__version__}
        run = Run(request)
        try:
            run.start()
            error = run.supervise()
        finally:
            run.stop()
    if error is not None:
        answer["error"] = error
    write_json(request["result"], answer)
    if error is None:
        return 0
    return 3 if error["kind"] == "machine" else 1


if __name__ == "__main__":
    sys.exit(main())
