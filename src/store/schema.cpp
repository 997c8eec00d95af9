#include "store/schema.hpp"

#include <array>

namespace echolo::store {
namespace {

// A step, once released, is never changed: a later version adds another.
constexpr std::array<std::string_view, 2> kMigrations = {R"sql(
CREATE TABLE runs (
  id TEXT PRIMARY KEY,
  sequence INTEGER NOT NULL,
  command TEXT NOT NULL,
  problem TEXT NOT NULL,
  world INTEGER NOT NULL,
  options TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('open', 'done', 'failed', 'stopped')),
  created TEXT NOT NULL,
  finished TEXT NOT NULL DEFAULT '',
  summary TEXT NOT NULL DEFAULT '',
  pid INTEGER NOT NULL,
  stop_requested INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX runs_by_sequence ON runs (sequence);

CREATE TABLE iterations (
  run TEXT NOT NULL REFERENCES runs (id),
  number INTEGER NOT NULL,
  candidate TEXT NOT NULL,
  label TEXT NOT NULL,
  detail TEXT NOT NULL,
  status TEXT NOT NULL,
  verdict TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (run, number)
) STRICT;

CREATE TABLE verdicts (
  id INTEGER PRIMARY KEY,
  run TEXT NOT NULL REFERENCES runs (id),
  candidate TEXT NOT NULL,
  options_key TEXT NOT NULL,
  status TEXT NOT NULL,
  artifact TEXT NOT NULL,
  created TEXT NOT NULL
) STRICT;
CREATE INDEX verdicts_by_candidate ON verdicts (run, candidate, options_key);

CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run TEXT NOT NULL REFERENCES runs (id),
  time TEXT NOT NULL,
  kind TEXT NOT NULL,
  data TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_run ON events (run, id);
CREATE TRIGGER events_never_change BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_never_go BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
)sql",
                                                         R"sql(
CREATE TABLE kept_verdicts (
  id TEXT PRIMARY KEY,
  command TEXT NOT NULL,
  subject TEXT NOT NULL,
  candidate TEXT NOT NULL,
  source TEXT NOT NULL,
  options TEXT NOT NULL,
  status TEXT NOT NULL,
  verdict TEXT NOT NULL,
  created TEXT NOT NULL
) STRICT;
)sql"};

}  // namespace

std::span<const std::string_view> migrations() { return kMigrations; }

}  // namespace echolo::store
