// The load-balancing loss of mixtures of experts (load_balancing_loss_func of transformers' models/mixtral/
// modeling_mixtral.py and its kin), which output_router_logits adds to the loss.
#pragma once

#include "model/modules.h"

namespace ullage::model {

// For as long as it lives, what the layers' routers give goes into the list; a null one: nowhere. As transformers'
// utils/output_capturing.py does while the body runs forward.
class CollectedRouterLogits {
 public:
  CollectedRouterLogits(Modules& modules, std::vector<Tensor>* into)
      : modules_(modules), before_(modules.collect_router_logits(into)) {}
  ~CollectedRouterLogits() { modules_.collect_router_logits(before_); }
  CollectedRouterLogits(const CollectedRouterLogits&) = delete;
  CollectedRouterLogits& operator=(const CollectedRouterLogits&) = delete;

 private:
  Modules& modules_;
  std::vector<Tensor>* before_;
};

// Of out.router_logits, of which there is at least one: makes out.balance and, where there is a loss, adds it in place.
void add_balance(const Architecture& architecture, Output& out);

}  // namespace ullage::model
