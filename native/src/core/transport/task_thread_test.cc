#include "transport/task_thread.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

#include "testing/no_more_threads.h"

namespace kubebeast {
namespace {

TEST(TaskThreadTest, RunsEveryTaskInOrderInAThreadOfItsOwn) {
  std::vector<int> ran;
  std::thread::id where;
  {
    TaskThread thread;
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(thread.Run([&ran, &where, i] {
        ran.push_back(i);
        where = std::this_thread::get_id();
      }));
    }
  }
  EXPECT_EQ(ran, (std::vector<int>{0, 1, 2}));
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(TaskThreadTest, TakesNoMoreTasksThanMayWait) {
  std::promise<void> over;
  TaskThread thread;
  std::promise<void> busy;
  ASSERT_TRUE(thread.Run([&] {
    busy.set_value();
    over.get_future().wait();
  }));
  busy.get_future().wait();
  for (std::size_t i = 0; i < TaskThread::kMaxWaiting; ++i) EXPECT_TRUE(thread.Run([] {}));
  EXPECT_FALSE(thread.Run([] {}));
  over.set_value();
}

TEST(TaskThreadTest, TakesTasksOnceTheSystemAllowsAThread) {
  bool ran = false;
  {
    TaskThread thread;
    {
      const NoMoreThreads full;
      EXPECT_FALSE(thread.Run([] { ADD_FAILURE() << "a task that was not taken"; }));
    }
    EXPECT_TRUE(thread.Run([&ran] { ran = true; }));
  }
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace kubebeast
