//===- FamilyFields.h - Fields that not all families have ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The functions of the rows of the table in Families.cpp: each reads what configurations of its
// family say beside the fields that all families have.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_FAMILYFIELDS_H
#define DTC_COMPILER_IMPORT_FAMILYFIELDS_H

#include "compiler/import/Family.h"

namespace dtc {

void readBert(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readDeepseekV2(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readDeepseekV3(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readGemma(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readGemma2(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readGemma3(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readGpt2(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readGptNeoX(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readGptOss(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readLlama(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readMistral(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readMixtral(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readOlmo2(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readOlmoe(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readPhi3(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readQwen2(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readQwen2Moe(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readQwen3(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readQwen3Moe(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readRoberta(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readSmolLm3(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
void readVit(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);

} // namespace dtc

#endif // DTC_COMPILER_IMPORT_FAMILYFIELDS_H
