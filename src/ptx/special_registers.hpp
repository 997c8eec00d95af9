// Names of the special registers (PTX ISA section 10).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ptx/module.hpp"

namespace echolo::ptx {

struct SpecialRegister {
  SpecialReg reg{};
  std::int64_t number =
      0;  // N of %envregN, %pmN, %reserved_smem_offset_N; pm registers of 64 bits from 64 on
};

// "%tid" with component "x", "%laneid" with none, "%envreg2".
std::optional<SpecialRegister> find_special_register(std::string_view name, std::string_view component);

}  // namespace echolo::ptx
