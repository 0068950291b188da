// SPDX-License-Identifier: BSD-3-Clause
//
// What srq-server.cc has beside its subject: its options, what its messages look like, and the registered memory of
// either side.
#pragma once

#include <anydat/anydat.h>
#include <fmt/format.h>
#include <getopt.h>
#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

inline constexpr std::size_t kMessageBytes = 16 << 10;  // the size of each buffer, hence of the longest message

inline void check(DAT_RETURN status, const char* call) {
  if (status == DAT_SUCCESS) return;
  if (DAT_GET_TYPE(status) == DAT_TIMEOUT_EXPIRED) throw std::runtime_error(fmt::format("{} took too long", call));
  const char* major = "";
  const char* minor = "";
  dat_strerror(status, &major, &minor);
  throw std::runtime_error(fmt::format("{} failed with {} {}: {}", call, major, minor, anydat_last_error()));
}

using Digest = std::array<unsigned char, 32>;

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void add(const void* data, std::size_t bytes) { EVP_DigestUpdate(context_.get(), data, bytes); }
  Digest finish() {
    Digest digest{};
    EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr);
    return digest;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

// ---- What travels: a head, then what belongs to it. All hosts are taken to be of one kind, so it is copied as it is.
// ----

enum class Kind : std::uint64_t { file = 1, data = 2, done = 3 };
struct Head {
  Kind kind;
  std::uint64_t file_bytes;  // file: how many bytes of data follow; the digest stands behind the head
};

// ---- Both sides: an adapter, a zone and some registered memory ----

class Adapter {
 public:
  Adapter(const std::string& name, std::size_t memory_bytes) : memory_(memory_bytes) {
    std::string writable = name;
    check(dat_ia_open(writable.data(), 64, &async_evd, &ia), "dat_ia_open");
    check(dat_pz_create(ia, &pz), "dat_pz_create");
    DAT_REGION_DESCRIPTION region{};
    region.for_va = memory_.data();
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    const int rights = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
    check(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, memory_bytes, pz, static_cast<DAT_MEM_PRIV_FLAGS>(rights),
                         &lmr, &context_, nullptr, nullptr, nullptr),
          "dat_lmr_create");
  }
  // Closing abruptly frees whatever was made through the adapter.
  ~Adapter() { dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG); }
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;

  DAT_EVD_HANDLE make_evd(DAT_COUNT length, DAT_EVD_FLAGS flags, DAT_CNO_HANDLE cno = DAT_HANDLE_NULL) const {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    check(dat_evd_create(ia, length, cno, flags, &evd), "dat_evd_create");
    return evd;
  }
  char* buffer(std::size_t index) { return memory_.data() + index * kMessageBytes; }
  DAT_LMR_TRIPLET segment(std::size_t index, std::size_t bytes) {
    DAT_LMR_TRIPLET triplet{};
    triplet.lmr_context = context_;
    triplet.virtual_address = reinterpret_cast<std::uintptr_t>(buffer(index));
    triplet.segment_length = bytes;
    return triplet;
  }

  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;

 private:
  std::vector<char> memory_;
  DAT_LMR_CONTEXT context_ = 0;
};

inline DAT_EP_ATTR endpoint_attributes(const Adapter& adapter, DAT_COUNT receives, DAT_COUNT requests) {
  DAT_IA_ATTR limits{};
  check(dat_ia_query(adapter.ia, nullptr, DAT_IA_FIELD_ALL, &limits, DAT_PROVIDER_FIELD_NONE, nullptr), "dat_ia_query");
  DAT_EP_ATTR attributes{};
  attributes.service_type = DAT_SERVICE_TYPE_RC;
  attributes.max_message_size = kMessageBytes;
  attributes.max_rdma_size = limits.max_rdma_size;
  attributes.qos = DAT_QOS_BEST_EFFORT;
  attributes.max_recv_dtos = receives;
  attributes.max_request_dtos = requests;
  attributes.max_recv_iov = 1;
  attributes.max_request_iov = 1;
  attributes.srq_soft_hw = DAT_HW_DEFAULT;
  return attributes;
}

// ---- The options ----

struct Options {
  int clients = 8;
  int buffers = 32;       // in the SRQ
  int low_watermark = 8;  // fewer than this many available: time to refill
  std::string ia = "soft";
  int client = -1;              // this process is a client, with this number
  unsigned long qualifier = 0;  // client: where the server listens
  std::string host;             // client: the server's; empty: this one
  bool serve = false;           // the clients come by themselves
  std::vector<std::string> files;
};

inline void usage(std::FILE* to) {
  fmt::print(to,
             "Usage: srq-server [--clients N] [--buffers N] [--low N] [--ia NAME] [FILE...]\n"
             "Receives files from N client processes through one small shared receive queue.\n"
             "  --clients N  client processes (8)\n"
             "  --buffers N  buffers in the queue (32)\n"
             "  --low N      low watermark of the queue (8)\n"
             "  --ia NAME    interface adapter (soft)\n"
             "  --serve      start no clients: wait for N that are started with\n"
             "  --client I --to HOST --qual QUAL   client I of N, of a server elsewhere with the same files\n"
             "Without a FILE the program sends its own executable.\n"
             "Example: srq-server --clients 4 --buffers 16 --low 4 /usr/include/*.h\n");
}

inline Options parse(int argc, char** argv) {
  static const option kLong[] = {{"clients", 1, nullptr, 'c'}, {"buffers", 1, nullptr, 'b'}, {"low", 1, nullptr, 'l'},
                                 {"ia", 1, nullptr, 'i'},      {"client", 1, nullptr, 'k'},  {"qual", 1, nullptr, 'q'},
                                 {"serve", 0, nullptr, 's'},   {"to", 1, nullptr, 't'},      {"help", 0, nullptr, 'h'},
                                 {nullptr, 0, nullptr, 0}};
  Options options;
  for (int c = 0; (c = getopt_long(argc, argv, "", kLong, nullptr)) != -1;) {
    switch (c) {
      case 'c':
        options.clients = std::atoi(optarg);
        break;
      case 'b':
        options.buffers = std::atoi(optarg);
        break;
      case 'l':
        options.low_watermark = std::atoi(optarg);
        break;
      case 'i':
        options.ia = optarg;
        break;
      case 'k':
        options.client = std::atoi(optarg);
        break;
      case 'q':
        options.qualifier = std::strtoul(optarg, nullptr, 10);
        break;
      case 's':
        options.serve = true;
        break;
      case 't':
        options.host = optarg;
        break;
      case 'h':
        usage(stdout);
        std::exit(0);
      default:
        usage(stderr);
        std::exit(2);
    }
  }
  options.files.assign(argv + optind, argv + argc);
  if (options.files.empty()) options.files.emplace_back("/proc/self/exe");
  if (options.clients < 1 || options.buffers < 1 || options.low_watermark < 1 ||
      options.low_watermark > options.buffers) {
    fmt::print(stderr,
               "srq-server: at least one client, one buffer, and a watermark from 1 to the number of buffers\n");
    std::exit(2);
  }
  return options;
}
