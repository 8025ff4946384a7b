// The server's end of TLS for tests: a certificate made on the spot, and connections that use it.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

#include "tests/support/scripted_server.h"

namespace espalier {

// A certificate that signs itself, valid for an hour. `subject` as in "IP:127.0.0.1" or "DNS:example.org".
class TestCertificate {
 public:
  explicit TestCertificate(const std::string& subject) : key_(EVP_EC_gen("P-256"), EVP_PKEY_free), certificate_(X509_new(), X509_free) {
    X509* const x = certificate_.get();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key_.get());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_EXTENSION* const names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, subject.c_str());
    X509_add_ext(x, names, -1);
    X509_EXTENSION_free(names);
    X509_sign(x, key_.get(), EVP_sha256());
  }

  std::string pem() const {
    return text([&](BIO* out) { PEM_write_bio_X509(out, certificate_.get()); });
  }
  std::string key_pem() const {
    return text([&](BIO* out) { PEM_write_bio_PrivateKey(out, key_.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  }
  X509* certificate() const { return certificate_.get(); }
  EVP_PKEY* key() const { return key_.get(); }

 private:
  template <typename Write>
  static std::string text(Write&& write) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), BIO_free);
    write(out.get());
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(out.get(), &bytes);
    return {bytes, static_cast<size_t>(size)};
  }

  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_;
  std::unique_ptr<X509, decltype(&X509_free)> certificate_;
};

class TlsPeer : public ScriptedPeer {
 public:
  TlsPeer(int descriptor, const TestCertificate& certificate)
      : ScriptedPeer(descriptor), context_(SSL_CTX_new(TLS_server_method()), SSL_CTX_free), session_(nullptr, SSL_free) {
    SSL_CTX_use_certificate(context_.get(), certificate.certificate());
    SSL_CTX_use_PrivateKey(context_.get(), certificate.key());
    session_.reset(SSL_new(context_.get()));
    SSL_set_fd(session_.get(), descriptor);
    SSL_accept(session_.get());
  }

  void send(std::string_view bytes) override { SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size())); }
  void say_goodbye() { SSL_shutdown(session_.get()); }

 protected:
  std::string read_some() override {
    char buffer[16384];
    const int got = SSL_read(session_.get(), buffer, sizeof(buffer));
    return got <= 0 ? std::string() : std::string(buffer, static_cast<size_t>(got));
  }

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> session_;
};

}  // namespace espalier
