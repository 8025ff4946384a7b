#include "replay/request_body.h"

#include "base/format.h"

namespace espalier {

std::string request_body(const Conversation& conversation, const ConversationTurn& turn, const RequestBodyOptions& options) {
  std::string body = format(R"({{"model":{},"messages":[)", dump_json(Json(options.model)));
  for (size_t i = 0; i < turn.num_messages; ++i) {
    if (i != 0) body += ',';
    body += dump_json(conversation.messages[i]);
  }
  body += format(R"(],"temperature":{},"max_completion_tokens":{},"stream":true,"seed":{})", dump_json(Json(options.temperature)),
                 options.max_completion_tokens, options.seed);
  if (!conversation.tools.is_null()) body += R"(,"tools":)" + dump_json(conversation.tools);
  body += '}';
  return body;
}

}  // namespace espalier
