// The source tree keeps its layers, and the checker that says so is checked with planted violations.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/layers/include_rules.hpp"

namespace flashsim {
namespace {

using test::SourceTree;
using test::violations;
using Lines = std::vector<std::string>;

/// A small tree that keeps every rule, to plant violations in.
SourceTree good_tree() {
  return {
      {"core/base/count.hpp", "#include <cstdint>\n"},
      {"core/problem/problem.hpp", "#include \"core/base/count.hpp\"\n"},
      {"core/schedule/walk.hpp", "#include \"core/problem/problem.hpp\"\n"},
      {"core/account/tally.hpp", "#include \"core/problem/problem.hpp\"\n"},
      {"core/account/ledger.hpp",
       "#include \"core/account/tally.hpp\"\n#include \"core/schedule/walk.hpp\"\n"},
      {"core/account/closed_form/flash.cpp", "#include \"core/account/tally.hpp\"\n"},
      {"core/attention/executor.cpp", "#include \"core/schedule/walk.hpp\"\n"},
      {"core/replay/recorder.cpp", "#include \"core/schedule/walk.hpp\"\n"},
      {"core/study/account.cpp",
       "#include \"core/account/ledger.hpp\"\n#include \"core/replay/frames.hpp\"\n"},
      {"core/replay/frames.hpp", "#include <vector>\n"},
      {"cuda/backend.hpp", "#include \"core/problem/problem.hpp\"\n"},
      {"cuda/kernel.cu", "#include \"cuda/backend.hpp\"\n#include <cuda_runtime.h>\n"},
      {"app/main.cpp",
       "#include \"core/base/count.hpp\"\n#include \"cuda/backend.hpp\"\n#include \"app/view.hpp\"\n"},
      {"app/view.hpp", "#include \"core/replay/frames.hpp\"\n"},
  };
}

/// What is found when `line` is added to `path` of the good tree.
Lines planted(const std::string& path, const std::string& line) {
  SourceTree tree = good_tree();
  tree[path] += line + "\n";
  return violations(tree);
}

TEST_CASE("every include of core, cuda and app keeps the layers") {
  const SourceTree sources = test::read_sources(FLASHSIM_SOURCE_DIR, {"core", "cuda", "app"});
  CHECK(sources.size() > 50);
  CHECK(sources.contains("core/account/closed_form/flash2.cpp"));
  for (const std::string& violation : violations(sources)) FAIL_CHECK(violation);
}

TEST_CASE("every module of the layers is found in the source tree") {
  const SourceTree sources = test::read_sources(FLASHSIM_SOURCE_DIR, {"core", "cuda", "app"});
  for (const std::string folder : {"core/base/", "core/problem/", "core/schedule/", "core/attention/",
                                   "core/account/", "core/replay/", "core/study/", "cuda/", "app/"}) {
    CAPTURE(folder);
    CHECK(std::any_of(sources.begin(), sources.end(),
                      [&](const auto& s) { return s.first.starts_with(folder); }));
  }
}

TEST_CASE("a tree that keeps the rules has no violations") { CHECK(violations(good_tree()) == Lines{}); }

TEST_CASE("an include of what stands to the right is found") {
  CHECK(planted("core/base/count.hpp", "#include \"core/problem/problem.hpp\"") ==
        Lines{"core/base/count.hpp includes core/problem/problem.hpp"});
  CHECK(planted("core/schedule/walk.hpp", "#include \"core/account/tally.hpp\"") ==
        Lines{"core/schedule/walk.hpp includes core/account/tally.hpp"});
  CHECK(planted("core/account/ledger.hpp", "#include \"core/study/account.cpp\"") ==
        Lines{"core/account/ledger.hpp includes core/study/account.cpp"});
  CHECK(planted("core/study/account.cpp", "#include \"app/view.hpp\"") ==
        Lines{"core/study/account.cpp includes app/view.hpp"});
}

TEST_CASE("attention, account and replay don't see each other") {
  CHECK(planted("core/attention/executor.cpp", "#include \"core/account/tally.hpp\"") ==
        Lines{"core/attention/executor.cpp includes core/account/tally.hpp"});
  CHECK(planted("core/account/ledger.hpp", "#include \"core/replay/frames.hpp\"") ==
        Lines{"core/account/ledger.hpp includes core/replay/frames.hpp"});
  CHECK(planted("core/replay/recorder.cpp", "#include \"core/attention/executor.cpp\"") ==
        Lines{"core/replay/recorder.cpp includes core/attention/executor.cpp"});
}

TEST_CASE("a closed form that reaches the schedule is found, directly and through others") {
  CHECK(planted("core/account/closed_form/flash.cpp", "#include \"core/schedule/walk.hpp\"") ==
        Lines{"core/account/closed_form/flash.cpp reaches core/schedule/walk.hpp through "
              "core/account/closed_form/flash.cpp"});
  CHECK(planted("core/account/closed_form/flash.cpp", "#include \"core/account/ledger.hpp\"") ==
        Lines{"core/account/closed_form/flash.cpp reaches core/schedule/walk.hpp through "
              "core/account/ledger.hpp"});
  CHECK(planted("core/account/tally.hpp", "#include \"core/schedule/walk.hpp\"") ==
        Lines{"core/account/closed_form/flash.cpp reaches core/schedule/walk.hpp through "
              "core/account/tally.hpp"});
}

TEST_CASE("includes that go round in a circle end the search") {
  CHECK(planted("core/account/tally.hpp", "#include \"core/account/closed_form/flash.cpp\"") == Lines{});
}

TEST_CASE("cuda sees base, problem and itself alone") {
  CHECK(planted("cuda/kernel.cu", "#include \"core/base/count.hpp\"") == Lines{});
  for (const std::string seen :
       {"core/schedule/walk.hpp", "core/account/tally.hpp", "core/study/account.cpp", "app/view.hpp"}) {
    CHECK(planted("cuda/kernel.cu", "#include \"" + seen + "\"") == Lines{"cuda/kernel.cu includes " + seen});
  }
}

TEST_CASE("only app sees cuda") {
  CHECK(planted("core/study/account.cpp", "#include \"cuda/backend.hpp\"") ==
        Lines{"core/study/account.cpp includes cuda/backend.hpp"});
  CHECK(planted("app/view.hpp", "#include \"cuda/backend.hpp\"") == Lines{});
}

TEST_CASE("what is ours is included from the project root, in quotes, and is there") {
  CHECK(planted("core/account/ledger.hpp", "#include \"tally.hpp\"") ==
        Lines{"core/account/ledger.hpp includes \"tally.hpp\", not from the project root"});
  CHECK(planted("core/account/ledger.hpp", "#include \"../base/count.hpp\"") ==
        Lines{"core/account/ledger.hpp includes \"../base/count.hpp\", not from the project root"});
  CHECK(planted("core/account/ledger.hpp", "#include <core/base/count.hpp>") ==
        Lines{"core/account/ledger.hpp includes <core/base/count.hpp>, not in quotes"});
  CHECK(planted("core/account/ledger.hpp", "#include \"core/base/missing.hpp\"") ==
        Lines{"core/account/ledger.hpp includes core/base/missing.hpp, which isn't there"});
}

TEST_CASE("a module that the layers don't know is found") {
  SourceTree tree = good_tree();
  tree["core/util/things.hpp"] = "";
  tree["core/loose.hpp"] = "";
  CHECK(violations(tree) == Lines{"core/loose.hpp belongs to no module that the layers know",
                                  "core/util/things.hpp belongs to no module that the layers know"});
}

TEST_CASE("includes are read however they are spaced, and only where they are includes") {
  CHECK(test::includes_of(
            "#include \"a.hpp\"\n  #  include <b>\n// #include \"c.hpp\"\n#include\"d.hpp\"\r\n") ==
        Lines{"a.hpp", "b", "d.hpp"});
}

}  // namespace
}  // namespace flashsim
