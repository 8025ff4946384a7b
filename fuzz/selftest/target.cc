// A target with known faults, by which the driver itself is tested. The first letter chooses the fault; it shows only where the
// number after it has grown to twelve digits.
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  size_t digits = 0;
  while (1 + digits < size && std::isdigit(data[1 + digits])) ++digits;
  if (digits < 12) return 0;
  switch (data[0]) {
    case 'a': std::abort();
    case 's': {
      volatile int* volatile nowhere = nullptr;
      *nowhere = 1;
      break;
    }
    case 'l':
      for (volatile bool forever = true; forever;) {
      }
  }
  return 0;
}
