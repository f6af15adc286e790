#include <pybind11/stl.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.h"
#include "byte_stream.h"
#include "channel.h"
#include "errors.h"
#include "text.h"

namespace kubebeast {

namespace py = pybind11;

namespace {

using client::ByteStream;

// Maximum delay of a signal before its Python handler, which runs in the interpreter and not in system calls.
constexpr std::chrono::milliseconds kSignalPeriod{100};

// Deleter that releases the GIL, as the destructor blocks until the call has ended.
struct Destroy {
  void operator()(ByteStream* stream) const {
    const py::gil_scoped_release release;
    delete stream;
  }
};
using StreamHolder = std::unique_ptr<ByteStream, Destroy>;

StreamHolder Dial(const std::string& address, std::string tls_ca, std::string tls_cert, std::string tls_key,
                  const std::string& tls_server_name, const std::optional<std::string>& authorization,
                  std::int64_t connect_timeout_ms, std::optional<bool> use_proxy) {
  if (connect_timeout_ms < 1 || connect_timeout_ms > INT32_MAX) {
    throw py::value_error("connect_timeout_ms = " + std::to_string(connect_timeout_ms) + ": must be positive");
  }
  const client::Pem pem{std::move(tls_ca), std::move(tls_cert), std::move(tls_key)};
  const std::chrono::milliseconds timeout(connect_timeout_ms);
  return WithoutGil([&] {
    auto channel = client::OpenChannel(address, pem, tls_server_name, timeout, use_proxy);
    return StreamHolder(new ByteStream(std::move(channel), authorization));
  });
}

void Send(ByteStream& stream, std::string_view message, bool is_last) {
  WithoutGil([&] { stream.Send(grpc::Slice(message.data(), message.size()), is_last); });
}

py::bytes AsBytes(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> pieces;
  message.Dump(&pieces);
  if (pieces.size() == 1) return {reinterpret_cast<const char*>(pieces[0].begin()), pieces[0].size()};
  std::string joined;
  joined.reserve(message.Length());
  for (const grpc::Slice& piece : pieces) joined.append(reinterpret_cast<const char*>(piece.begin()), piece.size());
  return joined;
}

py::object Receive(ByteStream& stream) {
  while (true) {
    switch (WithoutGil([&] { return stream.Receive(Clock::now() + kSignalPeriod); })) {
      case ByteStream::Received::kMessage:
        return AsBytes(*stream.message());
      case ByteStream::Received::kEnd:
        return py::none();
      case ByteStream::Received::kNothing:
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    }
  }
}

}  // namespace

void BindActCall(const py::module_& module) {
  py::class_<ByteStream, StreamHolder>(module, "ActCall")
      .def(py::init(&Dial), py::arg("address"), py::kw_only(), py::arg("tls_ca") = "", py::arg("tls_cert") = "",
           py::arg("tls_key") = "", py::arg("tls_server_name") = "", py::arg("authorization") = py::none(),
           py::arg("connect_timeout_ms") = client::kConnectTimeout.count(), py::arg("use_proxy") = py::none())
      .def("send", &Send, py::arg("message"), py::kw_only(), py::arg("is_last") = false)
      .def("receive", &Receive)
      .def("cancel", &ByteStream::Cancel, py::call_guard<py::gil_scoped_release>())
      .def("status", [](const ByteStream& stream) {
        const grpc::Status& status = stream.status();
        return py::make_tuple(static_cast<int>(status.error_code()), AsText(status.error_message()));
      });
}

}  // namespace kubebeast
