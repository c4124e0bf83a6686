#include "core/base/tensor.hpp"

#include "tests/catch.hpp"

namespace flashsim {
namespace {

TEST_CASE("a tensor is zero at first and its matrices lie row-major, one after the other") {
  Tensor4<int> tensor(2, 3, 4, 5);
  REQUIRE(tensor.data().size() == 2 * 3 * 4 * 5);
  for (const int value : tensor.data()) REQUIRE(value == 0);
  for (int at = 0; at < 2 * 3 * 4 * 5; ++at) tensor.data()[static_cast<std::size_t>(at)] = at;
  int expected = 0;
  for (int b = 0; b < 2; ++b) {
    for (int h = 0; h < 3; ++h) {
      const MatrixView<int> matrix = tensor.matrix(b, h);
      REQUIRE(matrix.rows == 4);
      REQUIRE(matrix.columns == 5);
      for (int row = 0; row < 4; ++row) {
        for (int column = 0; column < 5; ++column) REQUIRE(matrix(row, column) == expected++);
      }
    }
  }
}

TEST_CASE("a view writes through to the matrix that it shows") {
  Matrix<double> matrix(3, 2);
  matrix.view()(2, 1) = 7;
  matrix.view().row(1)[0] = 5;
  const Matrix<double>& seen = matrix;
  CHECK(seen.view()(2, 1) == 7);
  CHECK(seen.view()(1, 0) == 5);
  CHECK(seen.view()(0, 0) == 0);
  const MatrixView<const double> read_only = matrix.view();
  CHECK(read_only(2, 1) == 7);
}

}  // namespace
}  // namespace flashsim
