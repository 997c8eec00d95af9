"""What each rank is doing right now, in memory that outlives any hang: written by the rank, read by the parent."""

import json
import mmap
import struct
import time

_SLOT = 1024
_HEADER = struct.Struct(
    "<IId"
)  # length of the text, generation (odd while being written), time of the phase's start


class Progress:
    def __init__(self, world):
        self._world = world
        self._memory = mmap.mmap(-1, _SLOT * world)
        self._generation = 0
        self._phase_began = time.monotonic()
        self._state = {}

    def begin(self, rank, phase, case=0):
        """Enters a phase; the time limit counts from here."""
        self._phase_began = time.monotonic()
        self._state = {"phase": phase, "case": case, "issued": 0}
        self._write(rank)

    def collective(self, rank, text):
        """Says that a collective is about to be issued, or with an empty text that it has returned."""
        if text:
            self._state["issued"] += 1
            self._state["inside"] = text
        else:
            self._state["after"] = self._state.pop("inside", "")
        self._write(rank)

    def _write(self, rank):
        text = json.dumps(self._state).encode()[: _SLOT - _HEADER.size]
        base = rank * _SLOT
        self._generation += 2
        _HEADER.pack_into(self._memory, base, len(text), self._generation - 1, self._phase_began)
        self._memory[base + _HEADER.size : base + _HEADER.size + len(text)] = text
        _HEADER.pack_into(self._memory, base, len(text), self._generation, self._phase_began)

    def read(self, rank):
        """(state, when its phase began); an unreadable moment gives the state {}."""
        base = rank * _SLOT
        for _ in range(100):
            length, generation, began = _HEADER.unpack_from(self._memory, base)
            text = bytes(self._memory[base + _HEADER.size : base + _HEADER.size + length])
            if generation % 2 == 0 and _HEADER.unpack_from(self._memory, base)[1] == generation:
                try:
                    return (json.loads(text) if text else {}), began
                except ValueError:
                    return {}, began
        return {}, time.monotonic()
