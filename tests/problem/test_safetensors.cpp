#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/rng.hpp"
#include "base/text.hpp"
#include "problem/safetensors.hpp"

namespace echolo {
namespace {

std::string file(const std::string& header, std::size_t n_data) {
  const std::uint64_t n = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &n, 8);
  return out + header + std::string(n_data, '\1');
}

std::string fault(const std::string& header, std::size_t n_data) {
  const auto parsed = Safetensors::parse(file(header, n_data), "f");
  EXPECT_FALSE(parsed.ok()) << header;
  return parsed.ok() ? "" : parsed.error().render();
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}";
}

TEST(Safetensors, ReadsWhatItWrites) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("echolo-st-" + std::to_string(::getpid()))).string();
  const float floats[] = {1.5F, -2.0F, 3.0F};
  const std::uint8_t bytes[] = {1, 2, 3, 4, 5};
  const std::vector<TensorView> tensors = {
      {{"bytes", DType::kU8, {5}}, std::as_bytes(std::span(bytes))},
      {{"floats", DType::kF32, {3, 1}}, std::as_bytes(std::span(floats))},
      {{"none", DType::kI64, {0, 4}}, {}},
      {{"scalar", DType::kF32, {}}, std::as_bytes(std::span(floats, 1))}};
  ASSERT_TRUE(write_safetensors(path, tensors, {{"by", "a test"}}).ok());
  const auto read = Safetensors::read(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(read.ok()) << read.error().render();
  EXPECT_EQ(read->tensors().size(), 4U);
  EXPECT_EQ(read->metadata().at("by"), "a test");
  const TensorView* view = read->find("floats");
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->info, tensors[1].info);
  EXPECT_EQ(element_as_double(view->bytes.data(), DType::kF32, 1), -2.0);
  EXPECT_EQ(element_as_int(read->find("bytes")->bytes.data(), DType::kU8, 4), 5);
  EXPECT_EQ(read->get("float").error().hint, "it holds none, floats, scalar, bytes");
}

TEST(Safetensors, RefusesToWriteNonsense) {
  const float floats[] = {1.5F, -2.0F};
  const TensorView good{{"x", DType::kF32, {2}}, std::as_bytes(std::span(floats))};
  const TensorView bad{{"x", DType::kF32, {3}}, std::as_bytes(std::span(floats))};
  EXPECT_FALSE(write_safetensors("unused", std::vector{bad}).ok());
  EXPECT_FALSE(write_safetensors("unused", std::vector{good, good}).ok());
  EXPECT_FALSE(std::filesystem::exists("unused"));
}

TEST(Safetensors, RefusesMalformedFiles) {
  EXPECT_FALSE(Safetensors::parse("", "f").ok());
  EXPECT_FALSE(Safetensors::parse("1234567", "f").ok());
  EXPECT_FALSE(Safetensors::parse(std::string(8, '\xff'), "f").ok());
  EXPECT_FALSE(Safetensors::parse(file("{}", 0).substr(0, 9), "f").ok());
  EXPECT_NE(fault("[]", 0).find("does not begin with '{'"), std::string::npos);
  EXPECT_NE(fault("{", 0).find("not a JSON object"), std::string::npos);
  EXPECT_NE(fault("{}", 4).find("4 bytes belong to no tensor"), std::string::npos);
  EXPECT_NE(fault("{" + entry("a", "F32", "[2]", "[0,8]") + "," + entry("a", "F32", "[2]", "[0,8]") + "}", 8)
                .find("'a' twice"),
            std::string::npos);
  EXPECT_NE(fault("{" + entry("a", "F33", "[2]", "[0,8]") + "}", 8).find("unsupported dtype"),
            std::string::npos);
  EXPECT_NE(fault("{" + entry("a", "F32", "[2]", "[0,16]") + "}", 8).find("outside the file"),
            std::string::npos);
  EXPECT_NE(fault("{" + entry("a", "F32", "[2]", "[8,0]") + "}", 8).find("outside the file"),
            std::string::npos);
  EXPECT_NE(fault("{" + entry("a", "F32", "[3]", "[0,8]") + "}", 8).find("its shape asks for 12"),
            std::string::npos);
  EXPECT_NE(fault("{" + entry("a", "F32", "[-2]", "[0,8]") + "}", 8).find("not a whole number"),
            std::string::npos);
  EXPECT_NE(fault("{" + entry("a", "F32", "[1.5]", "[0,8]") + "}", 8).find("not a whole number"),
            std::string::npos);
  EXPECT_NE(fault("{" + entry("a", "F32", "[4611686018427387904,4]", "[0,0]") + "}", 0).find("too large"),
            std::string::npos);
  EXPECT_NE(fault("{" + entry("a", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") + "}", 4).find("at most 8"),
            std::string::npos);
  EXPECT_NE(fault("{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("b", "F32", "[1]", "[2,6]") + "}", 6)
                .find("overlaps"),
            std::string::npos);
  EXPECT_NE(
      fault("{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("b", "F32", "[1]", "[8,12]") + "}", 12)
          .find("overlaps"),
      std::string::npos);
  EXPECT_NE(fault(R"({"a":{"dtype":"F32","shape":[1]}})", 4).find("must have dtype, shape and data_offsets"),
            std::string::npos);
  EXPECT_NE(fault(R"({"__metadata__":{"a":1}})", 0).find("something else than strings"), std::string::npos);
  EXPECT_FALSE(Safetensors::parse(file("{\"a\":" + std::string(100000, '['), 0), "f").ok());
}

TEST(Safetensors, SurvivesRandomDamage) {
  const std::string good =
      file("{" + entry("a", "F32", "[2]", "[0,8]") + "," + entry("b", "BF16", "[2,1]", "[8,12]") + "}", 12);
  ASSERT_TRUE(Safetensors::parse(good, "f").ok());
  Rng rng(7);
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (std::uint64_t n = 1 + rng.below(3); n > 0; --n)
      bad[rng.below(bad.size())] = static_cast<char>(rng.below(256));
    if (rng.below(4) == 0) bad.resize(rng.below(bad.size()));
    const auto parsed = Safetensors::parse(bad, "f");
    if (!parsed) continue;
    for (const TensorView& tensor : parsed->tensors()) {
      EXPECT_EQ(tensor.bytes.size(), tensor.info.bytes());
      for (std::int64_t e = 0; e < tensor.info.elements(); ++e) {
        (void)element_as_double(tensor.bytes.data(), tensor.info.dtype, e);
      }
    }
  }
}

}  // namespace
}  // namespace echolo
