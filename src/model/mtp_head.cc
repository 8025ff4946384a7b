#include "model/mtp_head.h"

namespace espalier {

Result<MtpHead> MtpHead::load(WeightLoader& loader, const ModelConfig& config) {
  MtpHead head;
  ESPALIER_ASSIGN(head.fc_, loader.matrix("mtp.fc.weight"));
  ESPALIER_ASSIGN(head.embedding_norm_, loader.vector("mtp.pre_fc_norm_embedding.weight"));
  ESPALIER_ASSIGN(head.hidden_norm_, loader.vector("mtp.pre_fc_norm_hidden.weight"));
  ESPALIER_ASSIGN(head.norm_, loader.vector("mtp.norm.weight"));
  ESPALIER_ASSIGN(head.layer_, DecoderLayer::load(loader, config, "mtp.layers.0.", LayerKind::kFullAttention, 0));
  return head;
}

}  // namespace espalier
