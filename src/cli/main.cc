#include <cstdio>

int main() {
  std::puts("espalier 0.1.0");
  return 0;
}
