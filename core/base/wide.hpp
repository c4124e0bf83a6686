// 128-bit integers, for intermediate results that 64 bits can't hold.
#pragma once

namespace flashsim {

__extension__ typedef __int128 Wide;

}  // namespace flashsim
