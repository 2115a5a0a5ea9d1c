// SPDX-License-Identifier: Apache-2.0
// signs_of_life.h - finds processes that have died, or are stopped, where MPI does not.
#pragma once

#include <mpi.h>

#include <chrono>
#include <string>
#include <vector>

namespace tenon::mpi {

/// Each process exchanges signs of life with process 0, and process 0 with each: messages of one byte, ten in the time that a process may
/// be silent. Threads  only that of MPI.
class SignsOfLife {
 public:
  using Clock = std::chrono::steady_clock;
  /// Before start(), and in the only process of a job, nobody is silent. Collective. `limit`: how long a process may be silent.
  void start(Clock::duration limit);
  /// How long the thread may sleep between calls of problem().
  Clock::duration interval() const { return limit_ / 100; }
  /// Sends and receives what is due; which process is silent, empty: none.
  std::string problem();
  /// Says that this process ends, and returns when the others have said so too; which process is silent, empty: none.
  std::string leave();

 private:
  struct Peer {
    int rank = 0;
    std::string host;
    Clock::time_point seen;
    char in = 0, out = 0;
    MPI_Request incoming = MPI_REQUEST_NULL, outgoing = MPI_REQUEST_NULL;
    bool left = false;  ///< it has said so
    bool told = false;  ///< that this process leaves
  };

  void receive(Peer& peer);
  void read(Peer& peer, Clock::time_point now);
  /// False: the last message is still under way.
  bool send(Peer& peer, char what);

  Clock::duration limit_ = Clock::duration::max();
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<Peer> peers_;  // MPI writes to them: they stay where they are
  Clock::time_point next_look_, next_beat_;
};

}  // namespace tenon::mpi
