// torchvision's classifiers: AlexNet, VGG, ResNet, DenseNet-121 and MobileNetV2.
//
// Their configuration is {"model_type": "torchvision", "arch": NAME} with "num_classes" and "image_size" if wanted.
#pragma once

#include "model/family.h"

namespace ullage::model {

Expected<Architecture> build_torchvision(const JsonObject& config);
Output forward_torchvision(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
