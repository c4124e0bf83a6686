// The command line: what can be said, and who carries it out.
#pragma once

namespace flashsim {

/// Runs flashsim. Gives its exit status: 0 done, 1 ran but the result is wrong, 2 bad usage or input.
int run_command_line(int argc, char** argv);

}  // namespace flashsim
