#include "app/plot_files.hpp"

#include <span>

#include <fmt/format.h>

#include "core/base/file.hpp"

namespace flashsim {
namespace {

bool is_svg(const std::string& path) { return path.ends_with(".svg"); }
bool is_vega_lite(const std::string& path) { return path.ends_with(".vl.json"); }

}  // namespace

Outcome check_plots(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (!is_svg(path) && !is_vega_lite(path)) {
      return Error{fmt::format("--plot must end in .svg or .vl.json, not '{}'", path),
                   "an SVG is a picture, a .vl.json a Vega-Lite specification with the data in it"};
    }
    if (auto error = check_writable(path)) return error;
  }
  return std::nullopt;
}

Outcome write_plots(const std::vector<std::string>& paths, Plot plot) {
  set_scales(plot);
  std::vector<WholeFile> files;
  for (const std::string& path : paths) {
    auto file = WholeFile::open(path);
    if (!file) return file.error();
    const std::string text = is_svg(path) ? render_svg(plot) : render_vega_lite(plot);
    if (auto error = file->write(std::as_bytes(std::span(text)))) return error;
    files.push_back(std::move(file).value());
  }
  for (WholeFile& file : files) {
    if (auto error = file.commit()) return error;
  }
  return std::nullopt;
}

}  // namespace flashsim
