#include "channel.h"

#include <gtest/gtest.h>

namespace kubebeast::client {
namespace {

TEST(Channel, LearnersElsewhereMayNeedAProxy) {
  for (const char* address : {"learner.example.com:4431", "10.0.0.7:4431", "[2001:db8::1]:4431", "svc:4431",
                              "svc.example.com:4431", "learner.svc.example.com:4431"}) {
    EXPECT_TRUE(MayNeedProxy(address)) << address;
  }
}

TEST(Channel, NoProxyLeadsToThisMachineOrToAServiceOfTheCluster) {
  for (const char* address : {"127.0.0.1:4431", "localhost:4431", "[::1]:4431", "unix:/tmp/learner",
                              "pong-learner.training.svc:4431", "pong-learner.training.svc.:4431",
                              "pong-learner.training.svc.cluster.local:4431", "A.B.SVC.Cluster.Local:4431"}) {
    EXPECT_FALSE(MayNeedProxy(address)) << address;
  }
}

}  // namespace
}  // namespace kubebeast::client
