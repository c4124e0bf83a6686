// Times attention on request, so that another program can let it and a peer run in turn. Reads requests from
// stdin, one a line, and answers each with one line of JSON:
//
//   forward|backward f32|f64 HEADS SEQ HEAD_DIM causal|full THREADS [KEY=VALUE…]
//     repeats=N    timed calls; the answer has each of them and the median            (1)
//     warm=N       calls before those                                                 (0)
//     tiles=BxB    query rows × key rows                                        (128x128)
//     in=FILE      Q, K, V and dO, one after the other, as the type says; otherwise normal numbers are drawn
//     out=FILE     where O goes, or dQ, dK and dV
//   peak f32|f64 THREADS
//     the rate of multiply-adds on registers alone
//
// Inputs are kept until a request names others. A request that can't be met is answered with its error.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/parse.hpp"
#include "tests/bench/fma_peak.hpp"
#include "tests/bench/workload.hpp"

namespace flashsim::bench {
namespace {

using Json = nlohmann::ordered_json;

template <class Value>
Value required(Result<Value> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

/// The words of a request, taken one after the other.
class Words {
 public:
  explicit Words(const std::string& line) : words_(line) {}

  /// The next word; "" after the last.
  std::string next() {
    std::string word;
    words_ >> word;
    return word;
  }
  int whole(const char* name, int least, int most) {
    return static_cast<int>(required(parse_whole(name, next(), least, most)));
  }
  std::int64_t dimension(const char* name) { return required(parse_dimension(name, next())); }
  /// Which of two words comes next: true for the second.
  bool choice(const char* first, const char* second) {
    const std::string word = next();
    if (word != first && word != second) {
      throw std::runtime_error(fmt::format("'{}' is neither {} nor {}", word, first, second));
    }
    return word == second;
  }

 private:
  std::istringstream words_;
};

constexpr int kMostThreads = 4096;

struct Request {
  bool backward = false;
  Shape shape;
  bool causal = false;
  int threads = 1, repeats = 1, warm = 0;
  Tiling tiling;
  std::string in, out;
};

/// What follows the type.
Request parse_request(bool backward, Words& words) {
  Request request{.backward = backward};
  request.shape = {words.dimension("HEADS"), words.dimension("SEQ"), words.dimension("HEAD_DIM")};
  request.causal = words.choice("full", "causal");
  request.threads = words.whole("THREADS", 1, kMostThreads);
  for (std::string word = words.next(); !word.empty(); word = words.next()) {
    const std::size_t equals = std::min(word.find('='), word.size() - 1);
    const std::string key = word.substr(0, equals);
    const std::string value = word.substr(equals + 1);
    if (key == "repeats") {
      request.repeats = static_cast<int>(required(parse_whole(key, value, 1, 1000000)));
    } else if (key == "warm") {
      request.warm = static_cast<int>(required(parse_whole(key, value, 0, 1000000)));
    } else if (key == "tiles") {
      const std::size_t cross = std::min(value.find('x'), value.size());
      request.tiling.query_rows = required(parse_dimension(key, value.substr(0, cross)));
      request.tiling.key_rows =
          required(parse_dimension(key, value.substr(std::min(cross + 1, value.size()))));
    } else if (key == "in") {
      request.in = value;
    } else if (key == "out") {
      request.out = value;
    } else {
      throw std::runtime_error(fmt::format("there is no '{}'", word));
    }
  }
  return request;
}

template <class T>
Tensors<T> read_tensors(const Shape& shape, const std::string& path) {
  Tensors<T> tensors(shape);
  std::ifstream file(path, std::ios::binary);
  for (Tensor4<T>* tensor : tensors.all()) {
    file.read(reinterpret_cast<char*>(tensor->data().data()),
              static_cast<std::streamsize>(tensor->data().size() * sizeof(T)));
  }
  if (!file || file.peek() != std::ifstream::traits_type::eof()) {
    throw std::runtime_error("'" + path + "' doesn't hold four tensors of that type and shape");
  }
  return tensors;
}

template <class T>
void write_tensors(const std::vector<const Tensor4<T>*>& tensors, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  for (const Tensor4<T>* tensor : tensors) {
    file.write(reinterpret_cast<const char*>(tensor->data().data()),
               static_cast<std::streamsize>(tensor->data().size() * sizeof(T)));
  }
  file.close();
  if (!file) throw std::runtime_error("'" + path + "' can't be written");
}

/// The inputs of a request, kept from the last one where they are the same.
template <class T>
const Tensors<T>& tensors_of(const Request& request) {
  static std::unique_ptr<const Tensors<T>> kept;
  static std::tuple<Shape, std::string> kept_for;
  if (const std::tuple wanted(request.shape, request.in); !kept || kept_for != wanted) {
    kept.reset();
    kept = std::make_unique<const Tensors<T>>(
        request.in.empty() ? drawn_tensors<T>(request.shape) : read_tensors<T>(request.shape, request.in));
    kept_for = wanted;
  }
  return *kept;
}

/// Times `call` as requested; `write` takes the result of one more call where the request wants it.
template <class Call, class Write>
Json timed(const Request& request, double flops, const Call& call, const Write& write) {
  if (!request.out.empty()) write(call());
  for (int i = 0; i < request.warm; ++i) seconds_of(call);
  std::vector<double> runs;
  for (int i = 0; i < request.repeats; ++i) runs.push_back(seconds_of(call));
  std::vector<double> sorted = runs;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  const double median = sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  return {{"seconds", median}, {"gflops", 1e-9 * flops / median}, {"runs", runs}};
}

template <class T>
Json answer(const Request& request) {
  const Problem problem = problem_of<T>(request.shape, request.causal);
  if (const Outcome wrong = problem.validate()) throw std::runtime_error(wrong->message);
  const Tensors<T>& tensors = tensors_of<T>(request);
  const Execution execution{.threads = request.threads};
  const double flops = counted_flops(problem, request.backward);
  const auto forward = [&] {
    return attend<T>(Algorithm::flash2, problem, request.tiling, {}, tensors.inputs, execution);
  };
  if (!request.backward) {
    return timed(request, flops, forward,
                 [&](const Outputs<T>& outputs) { write_tensors<T>({&outputs.o}, request.out); });
  }
  const Outputs<T> outputs = forward();
  const auto backward = [&] {
    return attend_backward<T>(Algorithm::flash2, problem, request.tiling, {}, tensors.inputs, outputs,
                              tensors.d_o, execution);
  };
  return timed(request, flops, backward, [&](const Gradients<T>& gradients) {
    write_tensors<T>({&gradients.dq, &gradients.dk, &gradients.dv}, request.out);
  });
}

Json answer(const std::string& line) {
  Words words(line);
  const std::string what = words.next();
  if (what != "forward" && what != "backward" && what != "peak") {
    throw std::runtime_error(fmt::format("'{}' is none of forward, backward, peak", what));
  }
  const bool is_double = words.choice("f32", "f64");
  if (what == "peak") {
    const int threads = words.whole("THREADS", 1, kMostThreads);
    const double rate = is_double ? fma_peak<double>(threads) : fma_peak<float>(threads);
    return {{"gflops", 1e-9 * rate}, {"target", fma_target()}};
  }
  const Request request = parse_request(what == "backward", words);
  return is_double ? answer<double>(request) : answer<float>(request);
}

}  // namespace
}  // namespace flashsim::bench

int main() {
  using flashsim::bench::Json;
  for (std::string line; std::getline(std::cin, line);) {
    Json json;
    try {
      json = flashsim::bench::answer(line);
    } catch (const std::exception& error) {
      json = {{"error", error.what()}};
    }
    std::cout << json.dump() << std::endl;
  }
}
