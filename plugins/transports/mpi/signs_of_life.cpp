// SPDX-License-Identifier: Apache-2.0
#include "signs_of_life.h"

#include <algorithm>
#include <sstream>
#include <thread>

namespace tenon::mpi {
namespace {

constexpr char alive = 1, leaving = 2;

}  // namespace

void SignsOfLife::start(Clock::duration limit) {
  limit_ = limit;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
  int rank = 0, size = 1;
  MPI_Comm_rank(comm_, &rank);
  MPI_Comm_size(comm_, &size);
  char host[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  MPI_Get_processor_name(host, &length);
  std::vector<char> hosts(static_cast<std::size_t>(size) * sizeof host);
  MPI_Allgather(host, sizeof host, MPI_CHAR, hosts.data(), sizeof host, MPI_CHAR, comm_);
  next_look_ = next_beat_ = Clock::now();
  peers_.resize(static_cast<std::size_t>(rank == 0 ? size - 1 : 1));
  int next = rank == 0 ? 1 : 0;
  for (Peer& peer : peers_) {
    peer.rank = next++;
    peer.host = hosts.data() + static_cast<std::size_t>(peer.rank) * sizeof host;
    peer.seen = next_look_;
    receive(peer);
  }
}

std::string SignsOfLife::problem() {
  if (peers_.empty()) return {};
  const Clock::time_point now = Clock::now();
  if (now < next_look_) return {};
  const bool late = now - next_look_ > limit_ / 4;  // this process did not run: what the others have sent may be on its way
  next_look_ = now + interval();
  const bool beats = now >= next_beat_;
  if (beats) next_beat_ = now + limit_ / 10;
  for (Peer& peer : peers_) {
    read(peer, now);
    if (beats) send(peer, alive);
    if (late) peer.seen = std::max(peer.seen, now - limit_ / 2);
    if (!peer.left && now - peer.seen > limit_) {
      std::ostringstream text;
      text << "process " << peer.rank << " on host " << peer.host << " has shown no sign of life for "
           << std::chrono::duration<double>(limit_).count() << " s";
      return text.str();
    }
  }
  return {};
}

std::string SignsOfLife::leave() {
  for (bool waits = !peers_.empty(); waits;) {
    std::string silent = problem();
    if (!silent.empty()) return silent;
    waits = false;
    for (Peer& peer : peers_) {
      read(peer, Clock::now());
      if (!peer.told) peer.told = send(peer, leaving);
      waits = waits || !peer.told || !peer.left;
    }
    if (waits) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  for (Peer& peer : peers_) MPI_Wait(&peer.outgoing, MPI_STATUS_IGNORE);
  if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  peers_.clear();
  return {};
}

void SignsOfLife::receive(Peer& peer) {
  MPI_Irecv(&peer.in, 1, MPI_CHAR, peer.rank, 0, comm_, &peer.incoming);
}

void SignsOfLife::read(Peer& peer, Clock::time_point now) {
  for (int came = 1; came != 0 && !peer.left;) {
    if (MPI_Test(&peer.incoming, &came, MPI_STATUS_IGNORE) != MPI_SUCCESS || came == 0) return;
    peer.seen = now;
    peer.left = peer.in == leaving;
    if (!peer.left) receive(peer);
  }
}

bool SignsOfLife::send(Peer& peer, char what) {
  int sent = 0;
  if (peer.told || MPI_Test(&peer.outgoing, &sent, MPI_STATUS_IGNORE) != MPI_SUCCESS || sent == 0) return false;
  peer.out = what;
  return MPI_Isend(&peer.out, 1, MPI_CHAR, peer.rank, 0, comm_, &peer.outgoing) == MPI_SUCCESS;
}

}  // namespace tenon::mpi
