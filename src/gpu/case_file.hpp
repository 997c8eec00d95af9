// What one PE of a case works on, as the reference's process of the same rank writes it: one line a fact.
//
//   problem NAME / dtype CODE / param NAME VALUE / sets N / folder PATH / in CODE DIMS... / out CODE DIMS...
//
// Codes are those of echolo::DType. Tensors are plain row-major bytes in folder/KIND.SET.PE.INDEX.
#pragma once

#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace echolo::gpu {

struct Shape {
  int dtype = 0;
  std::vector<std::int64_t> dims;

  std::size_t bytes() const {
    static constexpr std::size_t kBytes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 1, 1};
    std::size_t n = kBytes[dtype];
    for (const std::int64_t extent : dims) n *= static_cast<std::size_t>(extent);
    return n;
  }
};

struct Case {
  std::string problem, folder;
  int dtype = 0, sets = 0;
  std::vector<std::pair<std::string, std::int64_t>> params;
  std::vector<Shape> inputs, outputs;

  std::string file(const char* kind, int set, int pe, std::size_t index) const {
    return folder + "/" + kind + "." + std::to_string(set) + "." + std::to_string(pe) + "." +
           std::to_string(index);
  }
};

inline Case read_case(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  Case out;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream in(line);
    std::string key;
    in >> key;
    if (key == "problem") in >> out.problem;
    if (key == "folder") in >> out.folder;
    if (key == "dtype") in >> out.dtype;
    if (key == "sets") in >> out.sets;
    if (key == "param") {
      out.params.emplace_back();
      in >> out.params.back().first >> out.params.back().second;
    }
    if (key == "in" || key == "out") {
      Shape shape;
      in >> shape.dtype;
      if (shape.dtype < 0 || shape.dtype > 11) throw std::runtime_error(path + ": no such dtype");
      std::int64_t extent = 0;
      while (in >> extent) shape.dims.push_back(extent);
      if (shape.dims.size() > 8) throw std::runtime_error(path + ": more than 8 dimensions");
      (key == "in" ? out.inputs : out.outputs).push_back(std::move(shape));
    }
  }
  if (out.sets < 1 || out.outputs.empty()) throw std::runtime_error(path + ": incomplete");
  return out;
}

}  // namespace echolo::gpu
