#include "timing/topology.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace echolo::timing {
namespace {

TEST(TopologyTest, EveryOneThatIsThereLoads) {
  EXPECT_GE(topology_names().size(), 4U);
  for (const std::string& name : topology_names()) {
    const Result<Topology> topology = load_topology(name);
    ASSERT_TRUE(topology.ok()) << topology.error().render();
    EXPECT_EQ(topology->name, name);
    EXPECT_GT(topology->sms, 1);
  }
}

TEST(TopologyTest, MistakesAreNamedWithTheirLine) {
  const Result<Topology> base = load_topology("h200-nvlink-x2");
  ASSERT_TRUE(base.ok());
  std::ifstream in(std::string(ECHOLO_SOURCE_DIR) + "/topologies/h200-nvlink-x2.toml");
  std::ostringstream text;
  text << in.rdbuf();
  const std::string path =
      (std::filesystem::temp_directory_path() / ("topology_" + std::to_string(::getpid()) + ".toml"))
          .string();
  const auto message = [&](const std::string& from, const std::string& to) {
    std::string changed = text.str();
    changed.replace(changed.find(from), from.size(), to);
    std::ofstream(path, std::ios::trunc) << changed;
    const Result<Topology> topology = load_topology(path);
    return topology.ok() ? std::string() : topology.error().render();
  };
  EXPECT_NE(message("sms = 132", "sms = 0").find(":5: sms must be"), std::string::npos);
  EXPECT_NE(message("sms = 132", "smss = 132").find("gpu.sms is missing"), std::string::npos);
  EXPECT_NE(message("max_pes = 2", "max_pes = 2\nmax_pe = 3").find("unknown key max_pe"), std::string::npos);
  EXPECT_NE(message("[link]", "[link").find(path), std::string::npos);
  std::filesystem::remove(path);
  const Result<Topology> wrong = load_topology("h200-nvlink-x3");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().render().find("h200-nvlink-x2"), std::string::npos);
}

}  // namespace
}  // namespace echolo::timing
