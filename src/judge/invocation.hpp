// How the person who reads a hint would type `echolo`.
#pragma once

#include <string>

namespace echolo::judge {

// "echolo", or the path it was started by where that is how it was found: "build/echolo".
std::string echolo_command();

}  // namespace echolo::judge
