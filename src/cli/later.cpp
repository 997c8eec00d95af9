// Commands whose time has not come: they say so.
#include <CLI/CLI.hpp>

#include "cli/session.hpp"

namespace echolo::cli {
namespace {

void add_one(CLI::App& parent, Session& session, const std::string& name, const std::string& full) {
  CLI::App* command = parent.add_subcommand(name, "(not built yet)");
  command->allow_extras();
  command->prefix_command();
  command->group("Not built yet");
  command->callback([&session, full] {
    session.chosen = [&session, full] {
      return session.fail(usage_error("echolo " + full + " is not built yet"));
    };
  });
}

}  // namespace

void add_later(CLI::App& app, Session& session) {
  for (const char* name : {"measure", "experiment", "docs", "serve", "demo"}) {
    add_one(app, session, name, name);
  }
  CLI::App* runs = app.get_subcommand("runs");
  for (const char* name : {"pause", "nudge", "ban", "pin", "fork", "edit", "approve", "reject", "set",
                           "compare", "export", "import"}) {
    add_one(*runs, session, name, std::string("runs ") + name);
  }
}

}  // namespace echolo::cli
