#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "queue/weight.h"

namespace fairlead::queue {

// The definition, word for word and slowly: everything is computed anew for every step.
class Definition {
 public:
  struct Account {
    int64_t start = 0;
    uint64_t weight = 0;
    uint64_t head = 0;
    bool is_active = false;
  };

  int64_t clock() const {
    __int128 sum = 0;
    __int128 weights = 0;
    for (const auto& [key, account] : members) {
      sum += static_cast<__int128>(account.start) * account.weight;
      weights += account.weight;
    }
    if (weights == 0) return last_clock;
    __int128 mean = sum / weights;
    if (sum % weights < 0) --mean;
    return static_cast<int64_t>(mean);
  }
  void settle() {
    while (true) {
      const int64_t now = clock();
      auto first = members.end();
      for (auto at = members.begin(); at != members.end(); ++at) {
        if (at->second.is_active || at->second.start > now) continue;
        if (first == members.end() || at->second.start < first->second.start) first = at;
      }
      if (first == members.end()) return;
      members.erase(first);
      if (members.empty()) last_clock = now;
    }
  }
  void activate(int key, Weight weight, uint64_t head) {
    settle();
    if (!members.contains(key)) {
      const int64_t now = clock();
      members[key] = {now, weight.fixed(), head, true};
    } else {
      members[key].head = head;
      members[key].is_active = true;
      reweigh(key, weight);
    }
  }
  void rest(int key) {
    if (members.contains(key)) members[key].is_active = false;
    settle();
  }
  int pick() {
    settle();
    const int64_t now = clock();
    int best = -1;
    for (const auto& [key, account] : members) {
      if (!account.is_active || account.start > now) continue;
      if (best < 0 || deadline(account) < deadline(members[best])) best = key;
    }
    if (best >= 0) {
      members[best].start +=
          static_cast<int64_t>(Weight::from_fixed(members[best].weight).stride());
    }
    return best;
  }
  void reweigh(int key, Weight weight) {
    if (!members.contains(key) || members[key].weight == weight.fixed()) return;
    auto& account = members[key];
    const int64_t now = clock();
    const __int128 owed = static_cast<__int128>(account.start - now) * account.weight;
    __int128 scaled = owed / weight.fixed();
    if (owed % weight.fixed() > 0) ++scaled;
    account.start = now + static_cast<int64_t>(scaled);
    account.weight = weight.fixed();
  }
  static std::pair<int64_t, uint64_t> deadline(const Account& account) {
    return {account.start + static_cast<int64_t>(Weight::from_fixed(account.weight).stride()),
            account.head};
  }

  std::map<int, Account> members;
  int64_t last_clock = 0;
};

}  // namespace fairlead::queue
