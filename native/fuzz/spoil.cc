#include "spoil.h"

#include <google/protobuf/message.h>
#include <google/protobuf/stubs/common.h>

#include <bit>
#include <cstdint>

namespace kubebeast::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Flips, overwrites, removes, repeats or inserts bytes at one place.
void Edit(std::string& bytes, Script& script) {
  const std::size_t kind = script.Below(5);
  const std::size_t at = bytes.empty() ? 0 : script.Below(65536) % bytes.size();
  const std::uint8_t value = script.Byte();
  if (bytes.empty() || kind == 0) {
    bytes.insert(at, 1U + value % 3U, static_cast<char>(value));
  } else if (kind == 1) {
    bytes[at] = static_cast<char>(static_cast<std::uint8_t>(bytes[at]) ^ 1U << value % 8U);
  } else if (kind == 2) {
    bytes[at] = static_cast<char>(value);
  } else if (kind == 3) {
    bytes.erase(at, 1U + value % 8U);
  } else {
    bytes.insert(at, bytes.substr(at, 1U + value % 16U));
  }
}

// Returns small numbers, the largest of every width, or any.
std::uint64_t Value(Script& script) {
  const std::size_t choice = script.Below(256);
  if (choice < 192) return choice % 16;
  return choice < 224 ? ~std::uint64_t{0} >> script.Below(64) : script.Number();
}

std::string Edited(std::string bytes, Script& script) {
  Edit(bytes, script);
  return bytes;
}

void Tamper(Message& message, Script& script);

void SetField(Message& message, const Reflection& reflection, const FieldDescriptor* field, Script& script) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.SetUInt32(&message, field, static_cast<std::uint32_t>(Value(script)));
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(&message, field, Value(script));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetInt64(&message, field, static_cast<std::int64_t>(Value(script)));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.SetFloat(&message, field, std::bit_cast<float>(static_cast<std::uint32_t>(Value(script))));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.SetDouble(&message, field, std::bit_cast<double>(static_cast<std::uint64_t>(Value(script))));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(&message, field, Value(script) % 2 == 1);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnumValue(&message, field, static_cast<int>(Value(script)));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.SetString(&message, field, Edited(reflection.GetString(message, field), script));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Tamper(*reflection.MutableMessage(&message, field), script);
    default:
      return Require(false, "every type of the contract is spoilt");
  }
}

void SetElement(Message& message, const Reflection& reflection, const FieldDescriptor* field, int i, Script& script) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetRepeatedInt64(&message, field, i, static_cast<std::int64_t>(Value(script)));
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const auto bits = static_cast<std::uint64_t>(Value(script));
      return reflection.SetRepeatedDouble(&message, field, i, std::bit_cast<double>(bits));
    }
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetRepeatedEnumValue(&message, field, i, static_cast<int>(Value(script)));
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string bytes = reflection.GetRepeatedString(message, field, i);
      return reflection.SetRepeatedString(&message, field, i, Edited(bytes, script));
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Tamper(*reflection.MutableRepeatedMessage(&message, field, i), script);
    default:
      return Require(false, "every repeated type of the contract is spoilt");
  }
}

void AddElement(Message& message, const Reflection& reflection, const FieldDescriptor* field, Script& script) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.AddInt64(&message, field, static_cast<std::int64_t>(Value(script)));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.AddDouble(&message, field, std::bit_cast<double>(static_cast<std::uint64_t>(Value(script))));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.AddEnumValue(&message, field, static_cast<int>(Value(script)));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.AddString(&message, field, script.Bytes());
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Tamper(*reflection.AddMessage(&message, field), script);
    default:
      return Require(false, "every repeated type of the contract is spoilt");
  }
}

// Changes one field, or one of a submessage.
void Tamper(Message& message, Script& script) {
  const Reflection& reflection = *message.GetReflection();
  const auto* descriptor = message.GetDescriptor();
  const auto* field = descriptor->field(static_cast<int>(script.Below(descriptor->field_count())));
  const std::size_t kind = script.Below(8);
  if (kind == 0) {
    reflection.ClearField(&message, field);
  } else if (!field->is_repeated()) {
    SetField(message, reflection, field, script);
  } else if (const int size = reflection.FieldSize(message, field); size == 0 || kind == 1) {
    AddElement(message, reflection, field, script);
  } else if (kind == 2) {
    reflection.RemoveLast(&message, field);
  } else {
    SetElement(message, reflection, field, static_cast<int>(script.Below(size)), script);
  }
}

void TamperPayload(v1::ActRequest& request, Script& script) {
  if (request.has_hello()) return Tamper(*request.mutable_hello(), script);
  if (request.has_observations()) return Tamper(*request.mutable_observations(), script);
  Tamper(*request.mutable_bye(), script);
}

}  // namespace

std::string Spoil(const v1::ActRequest& request, Script& script) {
  const std::size_t choice = script.Below(256);
  if (choice >= 240) return script.Bytes();
  const std::size_t times = 1 + choice % 4;
  if (choice < 128) return request.SerializeAsString();
  if (choice < 192) {
    v1::ActRequest tampered = request;
    for (std::size_t i = 0; i < times; ++i) TamperPayload(tampered, script);
    return tampered.SerializeAsString();
  }
  std::string bytes = request.SerializeAsString();
  for (std::size_t i = 0; i < times; ++i) Edit(bytes, script);
  return bytes;
}

void SilenceProtobuf() {
#if GOOGLE_PROTOBUF_VERSION < 4022000
  google::protobuf::SetLogHandler(nullptr);
#endif
}

}  // namespace kubebeast::fuzz
