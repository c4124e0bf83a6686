// Threads, listeners and observers change no bit, and every step is told once.
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <thread>

#include "core/account/ledger.hpp"
#include "core/schedule/tile_grid.hpp"
#include "tests/attention/backward.hpp"
#include "tests/attention/failures.hpp"
#include "tests/catch.hpp"
#include "tests/followed_walk.hpp"
#include "tests/random_problem.hpp"

namespace flashsim {
namespace {

using test::backward_ways;
using test::BackwardGiven;
using test::drawn_inputs;
using test::drawn_output_gradient;
using test::Failures;
using test::FollowedWalk;
using test::in_every_way;
using test::named;
using test::RandomNumbers;
using test::same_bits;
using test::Way;
using test::ways;

/// A problem with every tensor that it takes, drawn; scores are small, so that fp16 holds them.
template <class T>
BackwardGiven<T> drawn(const Problem& problem, std::uint64_t seed) {
  RandomNumbers random(seed);
  const Inputs<double> inputs = drawn_inputs(problem, random, 2);
  const Tensor4<double> d_o = drawn_output_gradient(problem, random);
  return test::stored<T>({problem, inputs}, d_o);
}

TEST_CASE("the number of threads changes no bit forward", "[threads]") {
  test::RandomShapes shapes(101);
  Failures failures;
  for (int i = 0; i < 25; ++i) {
    const test::Shape shape = shapes.next(40);
    in_every_way(ways({shape.tiling}), [&](auto type, const Way& way) {
      using T = decltype(type);
      const auto given = drawn<T>(shape.problem, 102);
      const auto run = [&](int threads) {
        return attend<T>(given.problem, way.method(), {}, given.inputs, {.threads = threads});
      };
      const Outputs<T> alone = run(1);
      for (const int threads : {2, 7}) {
        failures.add(same_bits(run(threads), alone), named<T>(way, test::text_of(shape)));
      }
    });
  }
  CHECK(failures.runs() == 25 * std::int64_t{kAlgorithms.size()} * 2 * 2);
  CHECK(failures.first() == "");
}

TEST_CASE("the number of threads changes no bit backward", "[threads]") {
  test::RandomShapes shapes(103);
  Failures failures;
  for (int i = 0; i < 30; ++i) {
    const test::Shape shape = shapes.next(40);
    in_every_way(backward_ways({shape.tiling}), [&](auto type, const Way& way) {
      using T = decltype(type);
      const auto given = drawn<T>(shape.problem, 104);
      const Gradients<T> alone = gradients_of(way, given);
      for (const int threads : {2, 7}) {
        failures.add(same_bits(gradients_of(way, given, {.threads = threads}), alone),
                     named<T>(way, test::text_of(shape)));
      }
    });
  }
  CHECK(failures.first() == "");
}

/// Holds its thread up before dQ, dK and dV are added to, so that later tasks get there first.
class Dawdler : public Listener {
 public:
  explicit Dawdler(int thread) : pause_(20 * (thread + 1)) {}
  void step(const Step& step) override {
    using enum Operation;
    if (step.operation == score_gradient || step.operation == key_gradient) {
      std::this_thread::sleep_for(pause_);
    }
  }

 private:
  std::chrono::microseconds pause_;
};

TEST_CASE("key tiles add to one dQ, and heads to one dK and dV, in order, whoever is ready first",
          "[threads]") {
  // In float32, so that no rounding to storage hides the order of additions.
  Problem many_tiles{.batch = 1, .heads = 2, .kv_heads = 1, .seq = 5, .kv_seq = 31, .head_dim = 3};
  Problem many_heads{.batch = 1, .heads = 24, .kv_heads = 1, .seq = 16, .kv_seq = 5, .head_dim = 3};
  many_tiles.storage = many_heads.storage = NumberType::fp32;
  for (const Problem& problem : {many_tiles, many_heads}) {
    for (const Way& way : backward_ways({{8, 1}, {8, 8}})) {
      INFO(text_of(way) << ", " << shape_text(problem));
      const auto given = drawn<float>(problem, 105);
      const Gradients<float> alone = gradients_of(way, given);
      std::vector<Dawdler> dawdlers;
      for (int thread = 0; thread < 7; ++thread) dawdlers.emplace_back(thread);
      Execution execution{.threads = 7};
      for (Dawdler& each : dawdlers) execution.listeners.push_back(&each);
      for (int again = 0; again < 2; ++again) CHECK(same_bits(gradients_of(way, given, execution), alone));
    }
  }
}

/// How often each line was told, without the steps that count elsewhere.
using Lines = std::map<std::string, std::int64_t>;

void count(const FollowedWalk& walk, std::int64_t times, Lines& lines) {
  for (const std::string& line : walk.lines()) {
    if (!line.ends_with(" elsewhere")) lines[line] += times;
  }
}

/// One listener a thread.
template <class OneListener>
struct Listening {
  template <class... Arguments>
  explicit Listening(int threads, const Arguments&... arguments) {
    for (int i = 0; i < threads; ++i) {
      each.push_back(std::make_unique<OneListener>(arguments...));
      execution.listeners.push_back(each.back().get());
    }
    execution.threads = threads;
  }
  std::vector<std::unique_ptr<OneListener>> each;
  Execution execution;
};

TEST_CASE("listeners are told every step of every head once, kernels and memory too", "[threads]") {
  test::RandomShapes shapes(106);
  Failures failures;
  for (int i = 0; i < 25; ++i) {
    const test::Shape shape = shapes.next(20);
    const auto given = drawn<float>(shape.problem, 107);
    for (const Way& way : ways({shape.tiling})) {
      Lines expected;
      count(FollowedWalk(shape.problem, way.method()), walks_of(shape.problem, way.method()).value(),
            expected);
      for (const int threads : {1, 3}) {
        const Listening<FollowedWalk> listening(threads);
        const auto heard = attend<float>(given.problem, way.method(), {}, given.inputs, listening.execution);
        Lines told;
        for (const auto& each : listening.each) count(*each, 1, told);
        failures.add(told == expected, named<float>(way, test::text_of(shape)));
        failures.add(same_bits(heard, attend<float>(given.problem, way.method(), {}, given.inputs)),
                     named<float>(way, "bits"));
      }
    }
  }
  CHECK(failures.first() == "");
}

TEST_CASE("backward, listeners are told every step of every head once", "[threads]") {
  test::RandomShapes shapes(108);
  Failures failures;
  for (int i = 0; i < 25; ++i) {
    const test::Shape shape = shapes.next(20);
    const auto given = drawn<float>(shape.problem, 109);
    for (const Way& way : backward_ways({shape.tiling})) {
      FollowedWalk one_head;
      walk_backward(way.algorithm, shape.problem, way.tiling, one_head);
      Lines expected;
      count(one_head, shape.problem.batch * shape.problem.heads, expected);
      for (const int threads : {1, 3}) {
        Listening<FollowedWalk> listening(threads);
        const Gradients<float> heard = gradients_of(way, given, listening.execution);
        Lines told;
        for (const auto& each : listening.each) count(*each, 1, told);
        failures.add(told == expected, named<float>(way, test::text_of(shape)));
        failures.add(same_bits(heard, gradients_of(way, given)), named<float>(way, "bits"));
      }
    }
  }
  CHECK(failures.first() == "");
}

/// The figures that add up: bytes, work and steps.
std::map<std::string, std::uint64_t> sums_of(const Tally& tally, std::int64_t times) {
  std::map<std::string, std::uint64_t> figures;
  for (const Figure& figure : figures_of(tally)) {
    if (figure.name.starts_with("peak") || figure.name.starts_with("launch")) continue;
    figures[figure.name] += static_cast<std::uint64_t>((figure.value * times).value());
  }
  return figures;
}

TEST_CASE("the ledgers of all threads add up to one head's walk, head by head", "[threads]") {
  test::RandomShapes shapes(110);
  Failures failures;
  for (int i = 0; i < 20; ++i) {
    const test::Shape shape = shapes.next(24);
    const auto given = drawn<float>(shape.problem, 111);
    const std::int64_t heads = shape.problem.batch * shape.problem.heads;
    const auto add_up = [](const Listening<Ledger>& listening) {
      std::map<std::string, std::uint64_t> sum;
      for (const auto& each : listening.each) {
        for (const auto& [name, value] : sums_of(each->walked(), 1)) sum[name] += value;
      }
      return sum;
    };
    for (const Way& way : ways({shape.tiling})) {
      Ledger one_head(shape.problem);
      walk(shape.problem, way.method(), one_head);
      const Listening<Ledger> listening(4, shape.problem);
      attend<float>(given.problem, way.method(), {}, given.inputs, listening.execution);
      const std::int64_t walks = walks_of(shape.problem, way.method()).value();
      failures.add(add_up(listening) == sums_of(one_head.walked(), walks),
                   named<float>(way, test::text_of(shape)));
    }
    for (const Way& way : backward_ways({shape.tiling})) {
      Ledger one_head(shape.problem);
      walk_backward(way.algorithm, shape.problem, way.tiling, one_head);
      const Listening<Ledger> listening(4, shape.problem);
      gradients_of(way, given, listening.execution);
      failures.add(add_up(listening) == sums_of(one_head.walked(), heads),
                   named<float>(way, "backward, " + test::text_of(shape)));
    }
  }
  CHECK(failures.runs() == 20 * (std::int64_t{kAlgorithms.size()} + 2));
  CHECK(failures.first() == "");
}

/// Notes the heads, and the query tiles of the steps that belong to one.
class Watcher : public StepObserver {
 public:
  void begin_head(std::int64_t batch, std::int64_t head) override { heads.emplace_back(batch, head); }
  void executed(const Step& step, const ChipValues&) override {
    ++steps;
    if (step.query_tile >= 0) ++tiles[step.query_tile];
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> heads;
  std::map<std::int64_t, std::int64_t> tiles;
  std::int64_t steps = 0;
};

TEST_CASE("an observed run has the bits of one on threads, and sees the walk as it stands", "[threads]") {
  test::RandomShapes shapes(112);
  Failures failures;
  for (int i = 0; i < 20; ++i) {
    const test::Shape shape = shapes.next(30);
    in_every_way(ways({shape.tiling}), [&](auto type, const Way& way) {
      using T = decltype(type);
      const auto given = drawn<T>(shape.problem, 113);
      Watcher watcher;
      const auto watched = attend<T>(given.problem, way.method(), {}, given.inputs, {.observer = &watcher});
      failures.add(
          same_bits(watched, attend<T>(given.problem, way.method(), {}, given.inputs, {.threads = 3})),
          named<T>(way, test::text_of(shape)));
      const auto steps = static_cast<std::int64_t>(FollowedWalk(given.problem, way.method()).steps().size());
      failures.add(watcher.steps == steps * walks_of(given.problem, way.method()).value(),
                   named<T>(way, "steps"));
    });
  }
  CHECK(failures.first() == "");
}

TEST_CASE("one query tile alone has its rows bit for bit, and nothing else is executed") {
  test::RandomShapes shapes(114);
  Failures failures;
  for (int i = 0; i < 12; ++i) {
    const test::Shape shape = shapes.next(16);
    const Problem& p = shape.problem;
    in_every_way(ways({shape.tiling}), [&](auto type, const Way& way) {
      using T = decltype(type);
      const auto given = drawn<T>(p, 115);
      const Outputs<T> all = attend<T>(p, way.method(), {}, given.inputs);
      // Packed, row r of a group is row r / group of its head r % group.
      const Problem walked = way.algorithm == Algorithm::split_kv ? packed_heads(p) : p;
      const std::int64_t group = walked.rows_per_query;
      const TileGrid grid(walked, way.tiling);
      for (std::int64_t tile = 0; tile < grid.query_tiles(); ++tile) {
        const QueryTilePlace place{p.batch - 1, walked.heads / 2, tile};
        Watcher watcher;
        const Outputs<T> one =
            attend<T>(p, way.method(), {}, given.inputs, {.observer = &watcher, .only = place});
        Outputs<T> expected{Tensor4<T>(p.batch, p.heads, p.seq, p.head_dim),
                            Tensor4<T>(p.batch, p.heads, p.seq, 1)};
        const Range rows = grid.rows(tile);
        for (std::int64_t r = rows.begin; r < rows.end; ++r) {
          const std::int64_t head = place.head * group + r % group;
          const std::int64_t row = r / group;
          std::copy_n(all.o.matrix(place.batch, head).row(row), p.head_dim,
                      expected.o.matrix(place.batch, head).row(row));
          expected.lse.matrix(place.batch, head)(row, 0) = all.lse.matrix(place.batch, head)(row, 0);
        }
        const std::string where = fmt::format("tile {} of {}", tile, test::text_of(shape));
        failures.add(same_bits(one, expected), named<T>(way, where));
        failures.add(watcher.heads.size() == 1 && watcher.heads[0] == std::pair{place.batch, place.head},
                     named<T>(way, "heads, " + where));
        failures.add(watcher.tiles.size() == 1 && watcher.tiles.count(tile) == 1,
                     named<T>(way, "tiles, " + where));
      }
    });
  }
  CHECK(failures.runs() > 400);
  CHECK(failures.first() == "");
}

TEST_CASE("progress rises from task to task to 1, and is told by one thread at a time", "[threads]") {
  const Problem problem{.batch = 1,
                        .heads = 3,
                        .kv_heads = 3,
                        .seq = 33,
                        .kv_seq = 40,
                        .head_dim = 4,
                        .storage = NumberType::fp32};
  const auto given = drawn<float>(problem, 116);
  const auto check = [](int threads, const auto& run) {
    std::vector<double> told;
    std::atomic<int> inside = 0;
    bool alone = true;
    Execution execution{.threads = threads};
    execution.progress = [&](double done) {
      alone = ++inside == 1 && alone;
      told.push_back(done);
      --inside;
    };
    run(execution);
    CHECK(alone);
    REQUIRE_FALSE(told.empty());
    CHECK(std::all_of(told.begin(), told.end(), [](double done) { return done > 0 && done <= 1; }));
    if (threads > 1) return;
    CHECK(std::is_sorted(told.begin(), told.end()));
    CHECK(told.back() == 1);
    CHECK(told.size() > 2);
  };
  for (const int threads : {1, 4}) {
    for (const Way& way : ways({{8, 8}})) {
      INFO(text_of(way));
      check(threads, [&](const Execution& execution) {
        attend<float>(problem, way.method(), {}, given.inputs, execution);
      });
    }
    for (const Way& way : backward_ways({{8, 8}})) {
      INFO(text_of(way) << " backward");
      check(threads, [&](const Execution& execution) { gradients_of(way, given, execution); });
    }
  }
}

}  // namespace
}  // namespace flashsim
