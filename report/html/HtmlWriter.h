//===- HtmlWriter.h - Elements, attributes and text of a page -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_HTML_HTMLWRITER_H
#define DTC_REPORT_HTML_HTMLWRITER_H

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace dtc {

/// A number as attributes have it: at most two digits after the point, no trailing zeros.
std::string svgNumber(double value);

/// A name and a value, which is escaped when it is written.
struct HtmlAttribute {
  std::string_view name;
  std::string value;

  HtmlAttribute(std::string_view name, std::string value) : name(name), value(std::move(value)) {}
  HtmlAttribute(std::string_view name, const char *value) : name(name), value(value) {}
  template <std::floating_point T>
  HtmlAttribute(std::string_view name, T value) : name(name), value(svgNumber(value)) {}
  template <std::integral T>
  HtmlAttribute(std::string_view name, T value) : name(name), value(std::to_string(value)) {}
};
using HtmlAttributes = std::initializer_list<HtmlAttribute>;

/// Writes HTML that is well-formed XML too: every element is closed, every text and every value is
/// escaped (see escapeXml()), so that no name from a file can become markup.
class HtmlWriter {
public:
  /// The document type, and the comment-free start of a page.
  HtmlWriter() : page("<!DOCTYPE html>\n") {}

  /// Begins an element, which close() ends.
  HtmlWriter &open(std::string_view name, HtmlAttributes attributes = {});
  /// Ends the element that was opened last.
  HtmlWriter &close();
  /// An element with text alone in it.
  HtmlWriter &element(std::string_view name, std::string_view text, HtmlAttributes attributes = {});
  /// An element without content, as the void elements of HTML and the shapes of SVG are.
  HtmlWriter &empty(std::string_view name, HtmlAttributes attributes = {});
  HtmlWriter &text(std::string_view text);
  /// Text that is written unchanged: the style and the script of a page, which are constants.
  HtmlWriter &constant(std::string_view markup);

  /// A figure that is as wide as the report lets it be, with a description for readers who cannot
  /// see it; to be closed. Sizes are in pixels.
  HtmlWriter &openPicture(double width, double height, std::string_view title,
                          std::string_view description, std::string_view kind);

  /// The row of names of a table with its <thead>, and the begin of its <tbody>; closeTable() ends
  /// both and the table. A name that begins with '#' heads a column of numbers.
  HtmlWriter &openTable(std::string_view caption, const std::vector<std::string> &columns);
  HtmlWriter &closeTable();
  /// A cell with a number.
  HtmlWriter &number(std::string_view text) { return element("td", text, {{"class", "n"}}); }

  /// The HTML text. Everything has been closed.
  std::string take();
  size_t size() const { return page.size(); }

private:
  void begin(std::string_view name, HtmlAttributes attributes);

  std::string page;
  std::vector<std::string> opened;
  int pictures = 0;
};

} // namespace dtc

#endif // DTC_REPORT_HTML_HTMLWRITER_H
