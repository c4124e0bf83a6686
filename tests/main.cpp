// main of every test executable, where Catch2 is version 2 and its package brings none.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
