// The table of fabrics in code and in docs/fabric.md is one table.
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "shmem/fabric_rules.hpp"

namespace echolo::shmem {
namespace {

TEST(FabricRulesTest, DocumentationHasTheSameTable) {
  const Result<std::string> text = read_file(std::string(ECHOLO_SOURCE_DIR) + "/docs/fabric.md");
  ASSERT_TRUE(text.ok()) << text.error().render();
  EXPECT_NE(text->find(fabric_table()), std::string::npos) << "docs/fabric.md needs\n" << fabric_table();
}

TEST(FabricRulesTest, NamesBothAndNothingElse) {
  EXPECT_TRUE((*find_fabric("nvlink"))->peers_reachable);
  EXPECT_FALSE((*find_fabric("rdma"))->peers_reachable);
  EXPECT_FALSE(find_fabric("ethernet").ok());
}

}  // namespace
}  // namespace echolo::shmem
