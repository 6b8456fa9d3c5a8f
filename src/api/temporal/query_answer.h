#pragma once

#include <string>

#include "shard/requests.h"
#include "temporal/api/common/v1/message.pb.h"
#include "temporal/api/enums/v1/query.pb.h"
#include "temporal/api/failure/v1/message.pb.h"

namespace fairlead::api {

// A worker's answer to a query, whether it came alone or with a workflow task.
shard::QueryAnswer read_query_answer(temporal::api::enums::v1::QueryResultType type,
                                     const temporal::api::common::v1::Payloads& result,
                                     const std::string& error_message,
                                     const temporal::api::failure::v1::Failure* failure,
                                     int64_t blob_bytes_max);

}  // namespace fairlead::api
