//===- HtmlWriter.cpp - Elements, attributes and text of a page ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/html/HtmlWriter.h"

#include "report/SvgStyle.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

namespace dtc {

std::string svgNumber(double value) {
  if (!std::isfinite(value))
    return "0"; // an infinite length is an error to browsers
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text == "-0" ? "0" : text;
}

void HtmlWriter::begin(std::string_view name, HtmlAttributes attributes) {
  page += '<';
  page += name;
  for (const HtmlAttribute &attribute : attributes) {
    page += ' ';
    page += attribute.name;
    page += "=\"";
    page += escapeXml(attribute.value);
    page += '"';
  }
}

HtmlWriter &HtmlWriter::open(std::string_view name, HtmlAttributes attributes) {
  begin(name, attributes);
  page += '>';
  opened.emplace_back(name);
  return *this;
}

HtmlWriter &HtmlWriter::close() {
  assert(!opened.empty() && "nothing is open");
  // A line for each element, but for those inside of a text, where it would be a space.
  static constexpr std::string_view inlineElements[] = {"a", "code", "span", "strong"};
  bool isInline = std::find(std::begin(inlineElements), std::end(inlineElements), opened.back()) !=
                  std::end(inlineElements);
  page += "</" + opened.back() + (isInline ? ">" : ">\n");
  opened.pop_back();
  return *this;
}

HtmlWriter &HtmlWriter::element(std::string_view name, std::string_view text,
                                HtmlAttributes attributes) {
  return open(name, attributes).text(text).close();
}

HtmlWriter &HtmlWriter::empty(std::string_view name, HtmlAttributes attributes) {
  begin(name, attributes);
  page += "/>\n";
  return *this;
}

HtmlWriter &HtmlWriter::text(std::string_view text) {
  page += escapeXml(text);
  return *this;
}

HtmlWriter &HtmlWriter::constant(std::string_view markup) {
  page += markup;
  return *this;
}

HtmlWriter &HtmlWriter::openPicture(double width, double height, std::string_view title,
                                    std::string_view description, std::string_view kind) {
  std::string id = std::to_string(++pictures);
  open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
               {"class", std::string(kind)},
               {"role", "img"},
               {"aria-labelledby", fmt::format("title{0} about{0}", id)},
               {"viewBox", fmt::format("0 0 {} {}", svgNumber(width), svgNumber(height))},
               {"width", width},
               {"height", height}});
  element("title", title, {{"id", "title" + id}});
  return element("desc", description, {{"id", "about" + id}});
}

HtmlWriter &HtmlWriter::openTable(std::string_view caption,
                                  const std::vector<std::string> &columns) {
  open("div", {{"class", "wide"}}).open("table");
  element("caption", caption).open("thead").open("tr");
  for (std::string_view column : columns) {
    bool isNumber = column.starts_with('#');
    element("th", column.substr(isNumber ? 1 : 0),
            {{"scope", "col"}, {"class", isNumber ? "n" : "t"}});
  }
  return close().close().open("tbody");
}

HtmlWriter &HtmlWriter::closeTable() { return close().close().close(); }

std::string HtmlWriter::take() {
  assert(opened.empty() && "an element is still open");
  return std::move(page);
}

} // namespace dtc
