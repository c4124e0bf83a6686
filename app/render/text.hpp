// Documents as plain text, for terminals.
#pragma once

#include <string>

#include "app/render/document.hpp"

namespace flashsim {

/// Text with colour and bold where `coloured`. Notes and last columns of text are broken to fit `width`
/// columns; 0 leaves every line as long as it is.
std::string render_text(const Document& document, bool coloured, std::size_t width = 0);

/// The columns that a text takes on a terminal: one for each code point.
std::size_t width_of(const std::string& text);

/// `text` with blanks to `width` columns, behind it or, where `right`, before it.
std::string padded(const std::string& text, std::size_t width, bool right);

}  // namespace flashsim
