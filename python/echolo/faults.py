"""Faults of a problem that a person can act on, and tracebacks that show only that person's own code."""

import os
import traceback


class ReferenceFault(Exception):
    """Something in the problem is wrong; the message says what, `file` and `line` where."""

    def __init__(self, message, hint="", file="", line=0, kind="usage"):
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.file = file
        self.line = line
        self.kind = kind

    def as_dict(self):
        return {
            "kind": self.kind,
            "message": self.message,
            "hint": self.hint,
            "file": self.file,
            "line": self.line,
        }


def is_inside(filename, directory):
    return os.path.realpath(filename).startswith(os.path.realpath(directory) + os.sep)


def innermost_line(frames, directory):
    """The deepest of (filename, line, ...) frames that lies in `directory`, as (filename, line)."""
    for filename, line in reversed(frames):
        if is_inside(filename, directory):
            return filename, line
    return "", 0


def fault_from_exception(error, what, directory):
    """The exception as Python would print it, but only with frames of files in `directory`."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if is_inside(frame.filename, directory)]
    text = ""
    if own:
        text = "Traceback (most recent call last):\n" + "".join(traceback.format_list(own))
    text += "".join(traceback.format_exception_only(type(error), error))
    file, line = innermost_line([(frame.filename, frame.lineno) for frame in frames], directory)
    if isinstance(error, SyntaxError) and error.filename and is_inside(error.filename, directory):
        file, line = error.filename, error.lineno or 0
    return ReferenceFault(f"{what} raised {type(error).__name__}\n{text.rstrip()}", "", file, line)


def near(word, names):
    """A hint that offers the names most like `word`, or all of them."""
    import difflib

    close = difflib.get_close_matches(word, list(names), n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(f"'{name}'" for name in close) + "?"
    return "known here are " + ", ".join(names)
