// The database's schema, as steps from one version to the next; PRAGMA user_version says how many were taken.
#pragma once

#include <span>
#include <string_view>

namespace echolo::store {

std::span<const std::string_view> migrations();

}  // namespace echolo::store
