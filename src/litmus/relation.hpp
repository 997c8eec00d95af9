// Small binary relations and their algebra, for axioms written as relations.
#pragma once

#include <bitset>
#include <vector>

#include "model/event.hpp"

namespace echolo::litmus {

class Relation {
 public:
  using Row = std::bitset<model::kMaxEvents>;

  explicit Relation(int n) : rows_(n) {}
  template <typename F>
  static Relation where(int n, F holds) {
    Relation all(n);
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) all.rows_[a][b] = holds(a, b);
    }
    return all;
  }
  int n() const { return static_cast<int>(rows_.size()); }
  bool has(int a, int b) const { return rows_[a][b]; }
  void add(int a, int b) { rows_[a][b] = true; }

  friend Relation operator|(Relation a, const Relation& b) {
    for (int i = 0; i < a.n(); ++i) a.rows_[i] |= b.rows_[i];
    return a;
  }
  friend Relation operator&(Relation a, const Relation& b) {
    for (int i = 0; i < a.n(); ++i) a.rows_[i] &= b.rows_[i];
    return a;
  }
  bool operator==(const Relation&) const = default;
  // a then b
  friend Relation operator*(const Relation& a, const Relation& b) {
    Relation result(a.n());
    for (int i = 0; i < a.n(); ++i) {
      for (int k = 0; k < a.n(); ++k) {
        if (a.rows_[i][k]) result.rows_[i] |= b.rows_[k];
      }
    }
    return result;
  }
  Relation inverse() const {
    return where(n(), [&](int a, int b) { return has(b, a); });
  }
  Relation optional() const {
    Relation result = *this;
    for (int i = 0; i < n(); ++i) result.add(i, i);
    return result;
  }
  Relation plus() const {
    Relation result = *this;
    for (int k = 0; k < n(); ++k) {
      for (int i = 0; i < n(); ++i) {
        if (result.rows_[i][k]) result.rows_[i] |= result.rows_[k];
      }
    }
    return result;
  }
  bool irreflexive() const {
    for (int i = 0; i < n(); ++i) {
      if (has(i, i)) return false;
    }
    return true;
  }
  bool empty() const {
    for (const Row& row : rows_) {
      if (row.any()) return false;
    }
    return true;
  }

 private:
  std::vector<Row> rows_;
};

}  // namespace echolo::litmus
