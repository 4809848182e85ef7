//===- PageStyle.h - Style sheet of the HTML report -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_HTML_PAGESTYLE_H
#define DTC_REPORT_HTML_PAGESTYLE_H

namespace dtc {

/// The style sheet. Colours are variables, which follow the browser's light or dark theme.
extern const char *const kPageStyle;

/// The script: buttons that make a figure wider. The report says the same without it.
extern const char *const kPageScript;

} // namespace dtc

#endif // DTC_REPORT_HTML_PAGESTYLE_H
