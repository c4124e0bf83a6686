#include "core/account/l2_cache.hpp"

#include <algorithm>

namespace flashsim {
namespace {

/// Of so many pieces the oldest goes.
constexpr int kSample = 7;
/// So much of the cache may wait to be written to memory.
constexpr std::int64_t kWaitingShare = 7;

}  // namespace

L2Cache::L2Cache(Bytes capacity, std::int64_t partitions, std::int64_t tiles)
    : partitions_(partitions),
      capacity_(capacity.value() / partitions),
      most_waiting_(capacity.value() / kWaitingShare),
      parts_(static_cast<std::size_t>(partitions)),
      bytes_(static_cast<std::size_t>(tiles)),
      flags_(static_cast<std::size_t>(tiles * partitions)) {
  for (Partition& partition : parts_) {
    partition.place.assign(flags_.size(), -1);
    partition.touched.assign(flags_.size(), 0);
  }
}

std::int64_t L2Cache::size_of(Piece piece) const {
  // The first pieces take what doesn't divide.
  const std::int64_t bytes = bytes_[static_cast<std::size_t>(piece / partitions_)];
  return bytes / partitions_ + (piece % partitions_ < bytes % partitions_ ? 1 : 0);
}

std::uint64_t L2Cache::random() {  // xorshift64 (Marsaglia 2003)
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  return state_;
}

bool L2Cache::touch(Partition& partition, Piece piece) {
  if (partition.place[static_cast<std::size_t>(piece)] < 0) return false;
  partition.touched[static_cast<std::size_t>(piece)] = ++partition.clock;
  return true;
}

void L2Cache::drop_one(std::int64_t side) {
  Partition& partition = parts_[static_cast<std::size_t>(side)];
  std::size_t oldest = random() % partition.resident.size();
  const auto age = [&](std::size_t at) {
    return partition.clock - partition.touched[static_cast<std::size_t>(partition.resident[at])];
  };
  for (int i = 1; i < kSample; ++i) {
    const std::size_t other = random() % partition.resident.size();
    if (age(other) > age(oldest)) oldest = other;
  }
  const std::int32_t piece = partition.resident[oldest];
  partition.resident[oldest] = partition.resident.back();
  partition.place[static_cast<std::size_t>(partition.resident[oldest])] = static_cast<std::int32_t>(oldest);
  partition.resident.pop_back();
  partition.place[static_cast<std::size_t>(piece)] = -1;
  partition.used -= size_of(piece);
  if (piece % partitions_ == side) write_back(piece);  // elsewhere it was a copy
}

void L2Cache::keep(std::int64_t side, Piece piece) {
  Partition& partition = parts_[static_cast<std::size_t>(side)];
  const std::int64_t size = size_of(piece);
  if (size > capacity_) return;  // passes through
  while (partition.used + size > capacity_) drop_one(side);
  partition.place[static_cast<std::size_t>(piece)] = static_cast<std::int32_t>(partition.resident.size());
  partition.touched[static_cast<std::size_t>(piece)] = ++partition.clock;
  partition.resident.push_back(static_cast<std::int32_t>(piece));
  partition.used += size;
}

void L2Cache::write_back(Piece piece) {
  std::uint8_t& flags = flags_[static_cast<std::size_t>(piece)];
  if ((flags & waiting) == 0) return;
  flags &= static_cast<std::uint8_t>(~waiting);
  waiting_ -= size_of(piece);
  written_ += size_of(piece);
}

std::int64_t L2Cache::load(std::int64_t tile, std::int64_t bytes, std::int64_t side) {
  bytes_[static_cast<std::size_t>(tile)] = bytes;
  const std::int64_t read_before = read_;
  for (std::int64_t home = 0; home < partitions_; ++home) {
    const Piece piece = tile * partitions_ + home;
    std::uint8_t& flags = flags_[static_cast<std::size_t>(piece)];
    if ((flags & known) == 0) {
      flags |= known;
      compulsory_ += size_of(piece);
    }
    Partition& near = parts_[static_cast<std::size_t>(side)];
    if (touch(near, piece)) continue;
    if (home != side) {
      Partition& far = parts_[static_cast<std::size_t>(home)];
      if (!touch(far, piece)) {
        read_ += size_of(piece);
        keep(home, piece);
      }
    } else {
      read_ += size_of(piece);
    }
    keep(side, piece);
  }
  return read_ - read_before;
}

void L2Cache::store(std::int64_t tile, std::int64_t bytes, std::int64_t side) {
  bytes_[static_cast<std::size_t>(tile)] = bytes;
  for (std::int64_t home = 0; home < partitions_; ++home) {
    const Piece piece = tile * partitions_ + home;
    std::uint8_t& flags = flags_[static_cast<std::size_t>(piece)];
    flags |= known;
    Partition& at_home = parts_[static_cast<std::size_t>(home)];
    if (!touch(at_home, piece)) keep(home, piece);
    // A copy that the writer's side holds is the new one from now on; other sides read it at home.
    if (home != side) touch(parts_[static_cast<std::size_t>(side)], piece);
    if ((flags & waiting) != 0) continue;
    flags |= waiting;
    waiting_ += size_of(piece);
    queue_.push_back(piece);
  }
  while (waiting_ > most_waiting_ && !queue_.empty()) {
    write_back(queue_.front());
    queue_.pop_front();
  }
}

}  // namespace flashsim
