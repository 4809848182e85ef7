//===- Printable.h - Escaping of text for terminals -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Names come from files, and files from anybody. A terminal obeys control characters, a line break
// in a name makes lines that look like messages of the tool, and a change of the direction of
// writing shows a name as another one, in HTML and SVG too. JSON has escapes of its own and keeps
// names as they are.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_PRINTABLE_H
#define DTC_SUPPORT_PRINTABLE_H

#include <string>
#include <string_view>

namespace dtc {

/// A text for one line. Control characters, line breaks, characters that change the direction of
/// writing, U+FFFE, U+FFFF and bytes that are no UTF-8 are written out: "\n", "\x1B", "\u202E",
/// "\xFF". All else, the backslash too, stays as it is.
std::string printable(std::string_view text);

/// The same for a text of several lines; line breaks and tabs stay. JSON stays JSON.
std::string printableLines(std::string_view text);

/// The same for the message of an error or a note: one line, and the details after it on lines that
/// begin with two spaces. Other line breaks come from names and are written out. Of a line of more
/// than 4,000 bytes the middle is left out, and of more than 1,000 lines the rest: a name from a
/// file may have millions.
std::string printableMessage(std::string_view message);

} // namespace dtc

#endif // DTC_SUPPORT_PRINTABLE_H
