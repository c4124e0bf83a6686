#include "core/study/scenario.hpp"

#include <cmath>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/problem/library.hpp"
#include "core/study/tensor_json.hpp"

namespace flashsim {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kSchema = "flashsim.scenario/1";
/// Tensors beyond this are no replay but a computation.
constexpr std::int64_t kMostElements = std::int64_t{1} << 24;

/// A dimension that the file may state and the tensors may tell: `told` is 0 where they don't.
std::int64_t agreed(JsonReader& reader, const std::string& key, std::int64_t told, std::int64_t otherwise) {
  const auto stated = reader.dimension(key);
  if (stated && told != 0 && *stated != told) {
    reader.fail({fmt::format("{} is {}, and the tensors have {}", reader.path_of(key), *stated, told), ""});
  }
  return stated.value_or(told != 0 ? told : otherwise);
}

/// What the tensors tell of the problem's dimensions; 0 where they don't.
struct Told {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, seq = 0, kv_seq = 0, head_dim = 0;
};

template <class T>
std::string dimensions(const Tensor4<T>& t) {
  return fmt::format("[{}][{}][{}][{}]", t.batch(), t.heads(), t.rows(), t.columns());
}

class ScenarioReader {
 public:
  ScenarioReader(const json& object, std::string source)
      : reader_(object, source + ": "), source_(std::move(source)) {}

  Result<Scenario> read() {
    scenario_.source = source_;
    reader_.expect_schema(kSchema);
    scenario_.title = reader_.text("title").value_or(source_);
    read_tensors();
    read_problem();
    read_tiling();
    read_switches();
    read_questions();
    if (auto error = reader_.finish()) return *error;
    return std::move(scenario_);
  }

 private:
  void read_tensors() {
    const json* object = reader_.object("tensors");
    if (object == nullptr) {
      reader_.fail({fmt::format("{} is missing", reader_.path_of("tensors")), kWhatTensorsAre});
      return;
    }
    JsonReader inner(*object, reader_.path_of("tensors"));
    const auto tensor = [&](const std::string& key) {
      const json* value = inner.value(key);
      if (value == nullptr) return Tensor4<double>();
      auto read = read_tensor(*value, inner.path_of(key));
      if (read) return std::move(read).value();
      inner.fail(read.error());
      return Tensor4<double>();
    };
    Inputs<double>& in = scenario_.inputs;
    in.q = tensor("q");
    in.k = tensor("k");
    in.v = tensor("v");
    in.scores = tensor("scores");
    if (const json* random = inner.object("random")) read_random(*random, inner.path_of("random"));
    if (auto error = inner.finish()) return reader_.fail(*error);

    const bool random = scenario_.random.has_value();
    const bool qkv = inner.has("q") && inner.has("k") && inner.has("v") && !inner.has("scores") && !random;
    const bool scores =
        inner.has("scores") && inner.has("v") && !inner.has("q") && !inner.has("k") && !random;
    const bool drawn =
        random && !inner.has("q") && !inner.has("k") && !inner.has("v") && !inner.has("scores");
    if (!qkv && !scores && !drawn) {
      return reader_.fail(
          {fmt::format("{} has the wrong set of tensors", reader_.path_of("tensors")), kWhatTensorsAre});
    }
    if (qkv) tell_from_qkv(inner);
    if (scores) tell_from_scores(inner);
  }

  void read_random(const json& object, const std::string& path) {
    JsonReader inner(object, path);
    const std::int64_t seed = inner.integer("seed").value_or(0);
    if (seed < 0) inner.fail({fmt::format("{} must be at least 0, not {}", inner.path_of("seed"), seed), ""});
    scenario_.random = RandomTensors{.seed = static_cast<std::uint64_t>(seed),
                                     .magnitude = inner.number("magnitude").value_or(1)};
    if (auto error = inner.finish()) reader_.fail(*error);
  }

  void tell_from_qkv(const JsonReader& tensors) {
    const auto& [q, k, v, ignored] = scenario_.inputs;
    if (k.batch() != v.batch() || k.heads() != v.heads() || k.rows() != v.rows() ||
        k.columns() != v.columns()) {
      reader_.fail({fmt::format("{} is {} and v is {}: they must have one shape", tensors.path_of("k"),
                                dimensions(k), dimensions(v)),
                    ""});
    } else if (q.batch() != k.batch() || q.columns() != k.columns()) {
      reader_.fail({fmt::format("{} is {} and k is {}: batch and head dimension must agree",
                                tensors.path_of("q"), dimensions(q), dimensions(k)),
                    ""});
    }
    told_ = {q.batch(), q.heads(), k.heads(), q.rows(), k.rows(), q.columns()};
  }

  void tell_from_scores(const JsonReader& tensors) {
    const auto& [q, k, v, scores] = scenario_.inputs;
    if (scores.batch() != 1 || scores.heads() != 1 || v.batch() != 1 || v.heads() != 1) {
      reader_.fail(
          {fmt::format("{} and v must be of one head: [N][Nkv] and [Nkv][d]", tensors.path_of("scores")),
           ""});
    } else if (scores.columns() != v.rows()) {
      reader_.fail(
          {fmt::format("{} has {} keys and v has {}", tensors.path_of("scores"), scores.columns(), v.rows()),
           ""});
    }
    told_ = {1, 1, 1, scores.rows(), v.rows(), v.columns()};
  }

  void read_problem() {
    static const json kNothing = json::object();
    const json* object = reader_.object("problem");
    JsonReader inner(object != nullptr ? *object : kNothing, reader_.path_of("problem"));
    Problem& p = scenario_.problem;
    p.batch = agreed(inner, "batch", told_.batch, 1);
    p.heads = agreed(inner, "heads", told_.heads, 1);
    p.kv_heads = agreed(inner, "kv_heads", told_.kv_heads, p.heads);
    p.seq = agreed(inner, "seq", told_.seq, 0);
    p.kv_seq = agreed(inner, "kv_seq", told_.kv_seq, p.seq);
    p.head_dim = agreed(inner, "head_dim", told_.head_dim, 0);
    for (const auto& [key, value] : {std::pair{"seq", p.seq}, {"head_dim", p.head_dim}}) {
      if (value == 0)
        inner.fail({fmt::format("{} is missing", inner.path_of(key)), "random tensors don't tell it"});
    }
    p.causal = inner.flag("causal").value_or(true);
    if (const auto name = inner.text("causal_alignment")) {
      if (const auto alignment = causal_alignment_named(*name)) {
        p.alignment = *alignment;
      } else {
        inner.fail(at(inner.path_of("causal_alignment"), alignment.error()));
      }
    }
    p.scale = inner.number("scale");
    p.storage = NumberType::fp32;
    if (const auto name = inner.text("dtype")) {
      const auto type = storage_type_named("type", *name);
      if (!type) {
        inner.fail(at(inner.path_of("dtype"), type.error()));
      } else if (*type != NumberType::fp32 && *type != NumberType::fp64) {
        inner.fail(
            {fmt::format("{} is {}: a scenario is executed in fp32 or fp64", inner.path_of("dtype"), *name),
             ""});
      } else {
        p.storage = *type;
      }
    }
    if (auto error = inner.finish()) return reader_.fail(*error);
    if (auto error = p.validate()) return reader_.fail(at(reader_.path_of("problem"), *error));
    const Count elements = Count(p.batch) * p.heads * p.seq * p.head_dim +
                           Count(2) * p.batch * p.kv_heads * p.kv_seq * p.head_dim;
    if (elements > Count(kMostElements)) {
      reader_.fail({fmt::format("{}: the tensors have more than {} elements ({})", source_, kMostElements,
                                shape_text(p)),
                    ""});
    }
  }

  void read_tiling() {
    const json* object = reader_.object("tiling");
    if (object == nullptr) return;
    JsonReader inner(*object, reader_.path_of("tiling"));
    scenario_.tiling.query_rows = inner.dimension("query_rows").value_or(scenario_.tiling.query_rows);
    scenario_.tiling.key_rows = inner.dimension("key_rows").value_or(scenario_.tiling.key_rows);
    if (auto error = inner.finish()) reader_.fail(*error);
  }

  void read_switches() {
    const json* object = reader_.object("switches");
    if (object == nullptr) return;
    JsonReader inner(*object, reader_.path_of("switches"));
    scenario_.switches.subtract_max = inner.flag("subtract_max").value_or(true);
    scenario_.switches.rescale = inner.flag("rescale").value_or(true);
    if (auto error = inner.finish()) reader_.fail(*error);
  }

  void read_questions() {
    const json* list = reader_.value("questions");
    if (list == nullptr) return;
    if (!list->is_array()) {
      return reader_.fail(
          {fmt::format("{} must be a list of texts, not {}", reader_.path_of("questions"), short_json(*list)),
           ""});
    }
    for (const json& question : *list) {
      if (!is_one_line(question)) {
        return reader_.fail({fmt::format("{} must be a list of texts of one line, and has {}",
                                         reader_.path_of("questions"), short_json(question)),
                             ""});
      }
      scenario_.questions.push_back(question.get<std::string>());
    }
  }

  static Error at(const std::string& path, Error error) {
    error.message = path + ": " + error.message;
    return error;
  }

  static constexpr const char* kWhatTensorsAre =
      "give q, k and v, or scores and v, or random with seed and magnitude";

  JsonReader reader_;
  std::string source_;
  Scenario scenario_;
  Told told_;
};

}  // namespace

Inputs<double> Scenario::tensors() const {
  if (!random) return inputs;
  const Problem& p = problem;
  std::mt19937_64 generator(random->seed);
  Inputs<double> in{.q = Tensor4<double>(p.batch, p.heads, p.seq, p.head_dim),
                    .k = Tensor4<double>(p.batch, p.kv_heads, p.kv_seq, p.head_dim),
                    .v = Tensor4<double>(p.batch, p.kv_heads, p.kv_seq, p.head_dim)};
  for (Tensor4<double>* tensor : {&in.q, &in.k, &in.v}) draw(generator, random->magnitude, *tensor);
  return in;
}

void Scenario::set_magnitude(double factor) {
  if (random) {
    random->magnitude = factor;
    return;
  }
  Tensor4<double>& scaled = inputs.scores_given() ? inputs.scores : inputs.q;
  for (double& value : scaled.data()) value *= factor;
}

Result<Scenario> scenario_from_json(const json& object, const std::string& source) {
  return ScenarioReader(object, source).read();
}

Result<Scenario> read_scenario(std::string_view text, const std::string& source) {
  const auto parsed = parse_json(text, source);
  if (!parsed) return parsed.error();
  return scenario_from_json(*parsed, source);
}

Result<Scenario> find_scenario(const std::string& name_or_path) {
  const auto data = find_data("scenario", "scenarios", name_or_path);
  if (!data) return data.error();
  return read_scenario(data->text, data->source);
}

ordered_json scenario_json(const Scenario& s) {
  const Problem& p = s.problem;
  ordered_json tensors;
  if (s.random) {
    tensors["random"] = {{"seed", s.random->seed}, {"magnitude", s.random->magnitude}};
  } else {
    if (s.inputs.scores_given()) {
      tensors["scores"] = tensor_json(s.inputs.scores);
    } else {
      tensors["q"] = tensor_json(s.inputs.q);
      tensors["k"] = tensor_json(s.inputs.k);
    }
    tensors["v"] = tensor_json(s.inputs.v);
  }
  return {{"schema", kSchema},
          {"title", s.title},
          {"problem",
           {{"batch", p.batch},
            {"heads", p.heads},
            {"kv_heads", p.kv_heads},
            {"seq", p.seq},
            {"kv_seq", p.kv_seq},
            {"head_dim", p.head_dim},
            {"causal", p.causal},
            {"causal_alignment", name_of(p.alignment)},
            {"scale", p.score_scale()},
            {"dtype", name_of(p.storage)}}},
          {"tensors", std::move(tensors)},
          {"tiling", {{"query_rows", s.tiling.query_rows}, {"key_rows", s.tiling.key_rows}}},
          {"switches", {{"subtract_max", s.switches.subtract_max}, {"rescale", s.switches.rescale}}},
          {"questions", s.questions}};
}

}  // namespace flashsim
