// What flashsim run refuses, word for word, before it has computed or written anything.
#include <filesystem>
#include <string>

#include "tests/app/process.hpp"
#include "tests/app/refusal.hpp"
#include "tests/app/tensor_files.hpp"
#include "tests/catch.hpp"

namespace {

namespace fs = std::filesystem;
using flashsim::test::kFiles;
using flashsim::test::refusal;
using flashsim::test::run_flashsim;
using flashsim::test::TemporaryFolder;
using flashsim::test::Tensors;

const std::string kSmall = "run --seq 40 --kv-seq 56 --batch 2 --heads 4 --kv-heads 2 --head-dim 8 ";

bool has(const std::string& text, const std::string& wanted) {
  return text.find(wanted) != std::string::npos;
}

}  // namespace

TEST_CASE("tensors that don't go together are refused") {
  const Tensors tensors;
  const auto refused = [&](const std::string& arguments) {
    return refusal("run " + arguments, tensors.folder());
  };
  CHECK(refused("--q q.npy") ==
        "error: --q is 'q.npy', and --k is missing\nhint: give --q, --k and --v, or none of them\n");
  CHECK(refused("--k k.npy --v v.npy") ==
        "error: --k is 'k.npy', and --q is missing\nhint: give --q, --k and --v, or none of them\n");
  CHECK(refused("--q q.npy --k k.npy --v short.npy") ==
        "error: 'k.npy' is [2, 7, 4] and 'short.npy' is [2, 6, 4]: K and V must have one shape\n");
  CHECK(refused("--q q.npy --k shallow.npy --v shallow.npy") ==
        "error: 'q.npy' is [2, 5, 4] and 'shallow.npy' is [2, 7, 3]: batch and head dimension must agree\n");
  CHECK(refused("--q q.npy --k three.npy --v three.npy") ==
        "error: 2 query heads can't share 3 key/value heads evenly\n"
        "hint: the number of query heads must be a multiple of the number of key/value heads\n");
  CHECK(refused("--q none.npy --k k.npy --v v.npy") ==
        "error: can't read 'none.npy': No such file or directory\n");
  const auto contradicted = [](const char* option, const char* asked, const char* file, const char* told) {
    return std::string("error: ") + option + " is " + asked + ", and '" + file + "' has " + told +
           "\nhint: leave " + option + " out, and --model: the tensors tell their sizes\n";
  };
  CHECK(refused(kFiles + "--batch 2") == contradicted("--batch", "2", "q.npy", "1"));
  CHECK(refused(kFiles + "--heads 3") == contradicted("--heads", "3", "q.npy", "2"));
  CHECK(refused(kFiles + "--kv-heads 1") == contradicted("--kv-heads", "1", "k.npy", "2"));
  CHECK(refused(kFiles + "--seq 9") == contradicted("--seq", "9", "q.npy", "5"));
  CHECK(refused(kFiles + "--kv-seq 9") == contradicted("--kv-seq", "9", "k.npy", "7"));
  CHECK(refused(kFiles + "--head-dim 8") == contradicted("--head-dim", "8", "q.npy", "4"));
  CHECK(refused(kFiles + "--model gpt2") == contradicted("--heads", "12", "q.npy", "2"));
  CHECK(refused(kFiles + "--do do.npy") ==
        "error: --do is 'do.npy', and without --backward nothing is done with it\nhint: add --backward\n");
  CHECK(refused(kFiles + "--backward --do k.npy") ==
        "error: 'k.npy' is [2, 7, 4], and dO must have the shape of O: [1, 2, 5, 4]\n");
  CHECK(refused(kFiles + "--seed 3") == "error: --seed is 3, and nothing is drawn: the tensors are given\n");
  CHECK(refused(kFiles + "--magnitude 3") ==
        "error: --magnitude is 3, and nothing is drawn: the tensors are given\n");
  CHECK(refused(kFiles + "--backward --do do.npy --seed 3") ==
        "error: --seed is 3, and nothing is drawn: the tensors are given\n");
  CHECK(refused("three-token " + kFiles) ==
        "error: give a scenario or files, not both: three-token and --q 'q.npy'\n");
  CHECK(refused("three-token --seed 3") ==
        "error: --seed is 3, and nothing is drawn: the tensors are given\n");
  CHECK(refused("three-token --seq 4") ==
        "error: --seq is 4, and scenario three-token has 3\n"
        "hint: leave --seq out, and --model: the tensors tell their sizes\n");
  CHECK(refused("three-token --input q.npy") ==
        "error: run takes a scenario or --input, not both: 'three-token' and 'q.npy'\n");
}

TEST_CASE("types, switches and passes that don't go together are refused") {
  CHECK(refusal("run --dtype fp8") ==
        "error: --dtype is fp8, and nothing computes in it\nhint: fp16, bf16, fp32 or fp64\n");
  CHECK(refusal("run --dtype fp64 --compute f32") ==
        "error: --dtype is fp64, which is wider than the compute type, fp32\nhint: --compute f64\n");
  CHECK(refusal("run --compute f16") == "error: --compute must be f32 or f64, not 'f16'\n");
  CHECK(
      refusal("run --accumulate storage") ==
      "error: --accumulate storage needs a storage type that is narrower than the compute type, and both are "
      "fp32\nhint: --dtype fp16 or --dtype bf16\n");
  CHECK(refusal("run --accumulate wide") == "error: --accumulate must be compute or storage, not 'wide'\n");
  CHECK(refusal("run --fault rescale-l-onyl") ==
        "error: unknown fault 'rescale-l-onyl'\nhint: did you mean 'rescale-l-only'? known: rescale-l-only, "
        "rescale-o-only, inverted-rescale, reset-per-tile, finite-mask, unmasked-padding\n");
  CHECK(refusal("run --algo standard --no-rescale") ==
        "error: --no-rescale means nothing for standard, which rescales nothing\n"
        "hint: choose one of flash1, flash2, memory-efficient, split-kv, block-sparse\n");
  CHECK(refusal("run --algo three-pass --no-rescale") ==
        "error: --no-rescale means nothing for three-pass, which rescales nothing\n"
        "hint: choose one of flash1, flash2, memory-efficient, split-kv, block-sparse\n");
  CHECK(refusal("run --algo memory-efficient --fault unmasked-padding") ==
        "error: --fault unmasked-padding means nothing for memory-efficient, which pads no tiles\n"
        "hint: choose one of three-pass, three-pass-stored, flash1, flash2, split-kv, block-sparse\n");
  CHECK(refusal("run --algo eager --fault reset-per-tile") ==
        "error: --fault reset-per-tile means nothing for eager, which has no online softmax\n"
        "hint: choose one of flash1, flash2, split-kv, block-sparse\n");
  CHECK(refusal("run --algo flash1 --backward") ==
        "error: --backward is there for standard and flash2, not for flash1\n");
  CHECK(refusal("run --algo eager --backward") ==
        "error: --backward is there for standard and flash2, not for eager\n");
  CHECK(refusal("run break-it --backward") ==
        "error: --backward needs Q and K, and scenario break-it gives scores in their place\n");
  CHECK(refusal("run break-it --scale 3") ==
        "error: --scale is 3, and scenario break-it gives scores, which are taken as they are\n");
  CHECK(refusal("run --backward=yes") == "error: --backward takes no value\n");
  CHECK(refusal("run --save") == "error: --save needs a value\n");
  CHECK(refusal("run --count") == "error: unknown option '--count'\nhint: did you mean '--out'?\n");
  CHECK(run_flashsim("--count run").err == "error: run takes no --count\n");
  CHECK(run_flashsim("compare --threads 2").err.starts_with("error: unknown option '--threads'\n"));
}

TEST_CASE("numbers that can't be are refused with their value") {
  for (const char* value : {"nan", "inf", "-inf", "1e999", "x", "''"}) {
    const std::string quoted = std::string(value) == "''" ? "''" : std::string("'") + value + "'";
    CHECK(refusal(std::string("run --scale ") + value) ==
          "error: --scale must be a finite number, not " + quoted + "\n");
    CHECK(refusal(std::string("run --magnitude ") + value) ==
          "error: --magnitude must be a finite number, not " + quoted + "\n");
  }
  for (const char* value : {"0", "1025", "-1", "two", "1.5"}) {
    CHECK(refusal(std::string("run --threads ") + value) ==
          std::string("error: --threads must be a whole number from 1 to 1024, not '") + value + "'\n");
  }
  for (const char* value : {"-1", "0.5", "9223372036854775808"}) {
    CHECK(refusal(std::string("run --seed ") + value) ==
          std::string("error: --seed must be a whole number from 0 to 9223372036854775807, not '") + value +
              "'\n");
  }
  // Zero and negative scales and magnitudes are numbers like others.
  for (const char* numbers : {"--scale 0 --magnitude 0", "--scale -3 --magnitude -2"}) {
    CHECK(has(run_flashsim(kSmall + numbers).out, "\nright: all 320 rows "));
  }
}

TEST_CASE("a run that no memory could hold is refused before it begins") {
  const std::string huge = refusal("run --seq 1000000 --heads 4000");
  CHECK(huge.starts_with(
      "error: this run needs 7.47 TiB of memory (B 1 · H 4000 · N 1000000 · d 128), and this machine has "));
  CHECK(has(huge, "\nhint: make the problem smaller: --seq, --kv-seq, --batch, --heads, --head-dim\n"));
  CHECK(
      refusal("run --seq 1099511627776 --heads 1099511627776")
          .starts_with("error: this run needs more memory than 64 bits can count (B 1 · H 1099511627776 · N "
                       "1099511627776 · d 128), and this machine has "));
  CHECK(refusal("run --seq 8 --heads 1 --tile-k 1099511627776 --fault unmasked-padding")
            .starts_with("error: this run needs "));
}

TEST_CASE("tiles beyond an explicit --sram are refused, and a GPU's limit isn't enforced") {
  CHECK(refusal("run --sram 1KiB --tile-k 64") ==
        "error: tiles 1×64 need 66048 B of shared memory for Q, K and V, and the limit given by --sram is "
        "1024 B\n"
        "hint: not even tiles of one row fit: they need 1536 B\n");
  CHECK(has(run_flashsim(kSmall + "--tile-q 4096 --tile-k 100000").out, " · tiles 4096×100000 · "));
}

TEST_CASE("a folder that can't be written into is told before the work") {
  const TemporaryFolder folder;
  folder.file("file", "x");
  const std::string long_work = "--seq 100000 --save ";
  CHECK(refusal("run " + long_work + "nowhere/x", folder) ==
        "error: can't write into 'nowhere/x': No such file or directory\n");
  CHECK(refusal("run " + long_work + "file", folder) == "error: can't write into 'file': Not a directory\n");
  CHECK(refusal("run " + long_work + "''", folder) ==
        "error: can't write into '': No such file or directory\n");
  fs::create_directories(folder.path() / "out" / "o.npy");
  CHECK(refusal("run " + long_work + "out", folder) == "error: can't write 'out/o.npy': Is a directory\n");
  CHECK(refusal("run --seq 100000 --out nowhere/x", folder) ==
        "error: can't write 'nowhere/x': No such file or directory\n");
}
