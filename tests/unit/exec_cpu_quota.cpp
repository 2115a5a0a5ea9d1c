// SPDX-License-Identifier: Apache-2.0
// The CPU quota of cgroups, read from a file tree that the tests write.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "exec/cpu_quota.h"
#include "exec/thread_pool.h"

namespace tenon::exec {
namespace {

/// A folder with the files of /proc and /sys, removed at the end.
struct FileTree {
  std::filesystem::path root = std::filesystem::temp_directory_path() / ("tenon_cpu_quota_" + std::to_string(getpid()));
  FileTree() { std::filesystem::remove_all(root); }
  ~FileTree() { std::filesystem::remove_all(root); }
  FileTree(const FileTree&) = delete;
  FileTree& operator=(const FileTree&) = delete;

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
};

const char* const version_2_mount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST_CASE("cpu quota: version 2 reads cpu.max of the process's own cgroup") {
  const FileTree tree;
  tree.write("proc/self/mountinfo", std::string("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n") + version_2_mount);
  tree.write("proc/self/cgroup", "0::/user.slice/job\n");
  tree.write("sys/fs/cgroup/user.slice/job/cpu.max", "150000 100000\n");
  REQUIRE(cpu_quota(tree.root));
  CHECK(*cpu_quota(tree.root) == 1.5);
  tree.write("sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
  CHECK_FALSE(cpu_quota(tree.root));
}

TEST_CASE("cpu quota: the smallest quota on the path to the root counts") {
  const FileTree tree;
  tree.write("proc/self/mountinfo", version_2_mount);
  tree.write("proc/self/cgroup", "0::/a/b/c\n");
  tree.write("sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  tree.write("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  tree.write("sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n");
  tree.write("sys/fs/cgroup/a/b/c/d/cpu.max", "10000 100000\n");
  REQUIRE(cpu_quota(tree.root));
  CHECK(*cpu_quota(tree.root) == 0.5);
}

TEST_CASE("cpu quota: version 1 divides the quota by the period, next to a version 2 without controllers") {
  const FileTree tree;
  tree.write("proc/self/mountinfo",
             "31 25 0:27 / /sys/fs/cgroup/cpu\\040time rw - cgroup cgroup rw,cpu,cpuacct\n"
             "32 25 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
             "33 25 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  tree.write("proc/self/cgroup", "5:cpuset:/other\n4:cpu,cpuacct:/box\n0::/\n");
  tree.write("sys/fs/cgroup/cpu time/box/cpu.cfs_quota_us", "200000\n");
  tree.write("sys/fs/cgroup/cpu time/box/cpu.cfs_period_us", "50000\n");
  tree.write("sys/fs/cgroup/cpuset/other/cpu.cfs_quota_us", "1\n");
  REQUIRE(cpu_quota(tree.root));
  CHECK(*cpu_quota(tree.root) == 4);
  tree.write("sys/fs/cgroup/cpu time/box/cpu.cfs_quota_us", "-1\n");
  CHECK_FALSE(cpu_quota(tree.root));
}

TEST_CASE("cpu quota: a container sees its own cgroup at the mount point") {
  const FileTree tree;
  tree.write("proc/self/mountinfo", "31 25 0:27 /docker/1f /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
  tree.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
  tree.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  tree.write("sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "70000\n");
  tree.write("sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000\n");
  const std::pair<const char*, double> cases[] = {{"/docker/1f", 1.0}, {"/docker/1f/inner", 0.7}, {"/elsewhere", 1.0}, {"/../..", 1.0}};
  for (const auto& example : cases) {
    CAPTURE(example.first);
    tree.write("proc/self/cgroup", std::string("4:cpu:") + example.first + "\n");
    REQUIRE(cpu_quota(tree.root));
    CHECK(*cpu_quota(tree.root) == example.second);
  }
}

TEST_CASE("cpu quota: absent and malformed files are no limit") {
  const FileTree tree;
  CHECK_FALSE(cpu_quota(tree.root));
  tree.write("proc/self/mountinfo", std::string("\nnonsense\n- - -\n30 23\n") + version_2_mount);
  CHECK_FALSE(cpu_quota(tree.root));
  tree.write("proc/self/cgroup", "\n0:\nx:y\n0::/job\n");
  CHECK_FALSE(cpu_quota(tree.root));
  for (const char* text : {"", "100000\n", "-5 100000\n", "0 100000\n", "100000 0\n", "ten thousand\n", "nan nan\n"}) {
    CAPTURE(text);
    tree.write("sys/fs/cgroup/job/cpu.max", text);
    CHECK_FALSE(cpu_quota(tree.root));
  }
}

TEST_CASE("cpu quota: threads are the quota rounded up, and at least one") {
  CHECK(threads_of_quota(0.2) == 1);
  CHECK(threads_of_quota(1.0) == 1);
  CHECK(threads_of_quota(1.5) == 2);
  CHECK(threads_of_quota(4.0) == 4);
  CHECK(threads_of_quota(1e30) >= 4096);
}

TEST_CASE("cpu quota: the thread budget exceeds neither the affinity nor the quota") {
  CHECK(available_threads() >= 1);
  CHECK(available_threads() <= affinity_threads());
  if (const auto quota = cpu_quota()) CHECK(available_threads() <= threads_of_quota(*quota));
}

}  // namespace
}  // namespace tenon::exec
