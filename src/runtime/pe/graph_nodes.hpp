// What the files about graphs share.
#pragma once

#include "runtime/pe/cudart.hpp"

namespace echolo::runtime::pe {

void write_nodes(wire::Writer& out, const cudaGraphNode_t* nodes, std::size_t n);
std::vector<cudaGraphNode_t> read_nodes(wire::Reader& in);
// Edges with data say when a kernel lets its successor begin; only plain ones are modelled.
int plain_edges(const char* name, const cudaGraphEdgeData* edges, std::size_t n);

}  // namespace echolo::runtime::pe
