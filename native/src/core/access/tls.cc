#include "access/tls.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "absl/strings/str_cat.h"

namespace kubebeast {
namespace {

namespace tls = grpc::experimental;

void Watch(const TlsOptions& options, tls::TlsCredentialsOptions& credentials) {
  credentials.set_certificate_provider(std::make_shared<tls::FileWatcherCertificateProvider>(
      options.key, options.certificate, options.authorities, static_cast<unsigned>(options.refresh.count())));
  if (!options.certificate.empty()) credentials.watch_identity_key_cert_pairs();
  if (!options.authorities.empty()) credentials.watch_root_certs();
}

}  // namespace

absl::Status ValidateTls(const TlsOptions& options, bool listens) {
  if (!options.enabled()) return absl::OkStatus();
  if (options.certificate.empty() != options.key.empty()) {
    return absl::InvalidArgumentError(options.key.empty() ? "tls_key is empty, but tls_cert is given"
                                                          : "tls_cert is empty, but tls_key is given");
  }
  if (listens && options.certificate.empty()) {
    return absl::InvalidArgumentError("tls_cert is empty: whoever listens with TLS needs a certificate");
  }
  if (options.refresh.count() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("tls_refresh_s = ", options.refresh.count(), ": must be at least 1"));
  }
  return absl::OkStatus();
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const TlsOptions& options) {
  if (!options.enabled()) return grpc::InsecureServerCredentials();
  tls::TlsServerCredentialsOptions credentials(nullptr);
  Watch(options, credentials);
  credentials.set_cert_request_type(options.authorities.empty()
                                        ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                        : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return tls::TlsServerCredentials(credentials);
}

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const TlsOptions& options) {
  if (!options.enabled()) return grpc::InsecureChannelCredentials();
  tls::TlsChannelCredentialsOptions credentials;
  Watch(options, credentials);
  credentials.set_verify_server_certs(true);
  return tls::TlsCredentials(credentials);
}

}  // namespace kubebeast
