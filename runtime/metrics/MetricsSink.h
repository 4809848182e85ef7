//===- MetricsSink.h - Interface of metric outputs ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_METRICS_METRICSSINK_H
#define DTC_RUNTIME_METRICS_METRICSSINK_H

#include "runtime/metrics/StepMetrics.h"
#include "support/Error.h"

namespace dtc::runtime {

/// A place to which a run gives the metrics of its steps, in their order. Opening one finds out
/// whether that works and changes nothing that an earlier run has left.
class MetricsSink {
public:
  virtual ~MetricsSink() = default;

  /// The next step is the one after `step`: metrics of an earlier run for later ones no longer
  /// hold. Only the first call counts.
  virtual MaybeError begin(int64_t step) = 0;
  /// After begin(). Others see the step when this returns.
  virtual MaybeError write(const StepMetrics &metrics) = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_METRICS_METRICSSINK_H
