#include "store/image.h"

namespace fairlead::store {

void Image::apply(const WriteBatch& batch) {
  for (const WriteBatch::Op& op : batch.ops()) {
    switch (op.kind) {
      case WriteBatch::Kind::kPut:
        rows_.insert_or_assign(op.key, op.value);
        break;
      case WriteBatch::Kind::kErase:
        rows_.erase(op.key);
        break;
      case WriteBatch::Kind::kEraseRange:
        if (op.key < op.value) rows_.erase(rows_.lower_bound(op.key), rows_.lower_bound(op.value));
        break;
    }
  }
}

std::optional<std::string> Image::get(std::string_view key) const {
  const auto row = rows_.find(key);
  if (row == rows_.end()) return std::nullopt;
  return row->second;
}

void Image::scan(std::string_view begin, std::string_view end, const Store::Visit& visit) const {
  for (auto row = rows_.lower_bound(begin); row != rows_.end() && row->first < end; ++row) {
    if (!visit(row->first, row->second)) return;
  }
}

void Image::scan_reverse(std::string_view begin, std::string_view end,
                         const Store::Visit& visit) const {
  for (auto row = rows_.lower_bound(end); row != rows_.begin();) {
    --row;
    if (row->first < begin || !visit(row->first, row->second)) return;
  }
}

}  // namespace fairlead::store
