// echolo-node [FILE]: one job on one virtual node. Reads a JobSpec as JSON from FILE or standard input and
// writes one JSON document: the JobResult, or {"error": {...}} where the machine is at fault.
#include <sys/prctl.h>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "runtime/job.hpp"
#include "runtime/node/node.hpp"

namespace {

int fail(const echolo::Error& error) {
  const nlohmann::json out = {{"error",
                               {{"kind", static_cast<int>(error.kind)},
                                {"message", error.message},
                                {"hint", error.hint},
                                {"file", error.file},
                                {"line", error.line}}}};
  std::cout << out.dump() << '\n';
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  // Never outlives whoever asked.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::signal(SIGPIPE, SIG_IGN);
  echolo::install_interrupt_handler();
  std::string text;
  if (argc == 2) {
    echolo::Result<std::string> file = echolo::read_file(argv[1]);
    if (!file.ok()) return fail(file.error());
    text = std::move(*file);
  } else if (argc == 1) {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    std::fprintf(stderr, "usage: echolo-node [JOB.json]\n");
    return 2;
  }
  echolo::runtime::JobSpec spec;
  try {
    spec = nlohmann::json::parse(text).get<echolo::runtime::JobSpec>();
  } catch (const std::exception& e) {
    return fail(echolo::usage_error(std::string("not a job: ") + e.what()));
  }
  echolo::runtime::Node node(std::move(spec));
  const echolo::Result<echolo::runtime::JobResult> result = node.run();
  if (!result.ok()) return fail(result.error());
  std::cout << nlohmann::json(*result).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  return std::cout.flush() ? 0 : 3;
}
