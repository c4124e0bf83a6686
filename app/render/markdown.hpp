// Documents as Markdown, for notes and slides.
#pragma once

#include <string>

#include "app/render/document.hpp"

namespace flashsim {

std::string render_markdown(const Document& document);

}  // namespace flashsim
