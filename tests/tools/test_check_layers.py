"""check_layers.py on small trees made for the purpose."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_layers  # noqa: E402

TABLE = """# Design

| folder | what | may include |
|---|---|---|
| `src/base` | errors | – |
| `src/ops` | contracts | base |
| `src/backend` | the interface | ops, base |
| `src/backend/reference` | scalar | `backend/backend.h`, ops, base |
| `src/backend/cpu` | fast | `backend/backend.h`, ops, base |
| `src/model` | forward pass | `backend/backend.h`, ops, base |
| `src/cli` | main | all |

| another | table | may include |
|---|---|---|
| `src/model` | not this one | all |
"""


class CheckLayers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("ARCHITECTURE.md", TABLE)
        self.write("src/base/result.h", "#include <string>\n")
        self.write("src/ops/rms_norm.h", '#include "base/result.h"\n')
        self.write("src/backend/backend.h", '#include "ops/rms_norm.h"\n')
        self.write("src/backend/pack.h", "")
        self.write("src/backend/cpu/cpu_backend.h", '#include "backend/backend.h"\n')

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def problems(self):
        return check_layers.check(self.root)

    def test_a_clean_tree_has_no_problems(self):
        self.assertEqual(self.problems(), [])

    def test_an_upward_include_is_named_by_file_and_line(self):
        self.write("src/base/log.h", '#pragma once\n\n#include "ops/rms_norm.h"\n')
        self.assertEqual(self.problems(), ['src/base/log.h:3: src/base may not include "ops/rms_norm.h"'])

    def test_an_entry_that_is_a_header_allows_that_header_alone(self):
        self.write("src/model/layer.h", '#include "backend/backend.h"\n#include "backend/pack.h"\n')
        self.assertEqual(self.problems(), ['src/model/layer.h:2: src/model may not include "backend/pack.h"'])

    def test_a_sub_folder_with_a_row_is_a_layer_of_its_own(self):
        self.write("src/backend/reference/linear.cc", '#include "backend/backend.h"\n#include "backend/cpu/cpu_backend.h"\n')
        self.write("src/backend/pick.cc", '#include "backend/cpu/cpu_backend.h"\n')
        self.assertEqual(
            self.problems(),
            [
                'src/backend/pick.cc:1: src/backend may not include "backend/cpu/cpu_backend.h"',
                'src/backend/reference/linear.cc:2: src/backend/reference may not include "backend/cpu/cpu_backend.h"',
            ],
        )

    def test_all_allows_everything(self):
        self.write("src/cli/main.cc", '#include "backend/cpu/cpu_backend.h"\n#include "ops/rms_norm.h"\n')
        self.assertEqual(self.problems(), [])

    def test_only_the_first_table_counts(self):
        self.write("src/model/layer.h", '#include "backend/cpu/cpu_backend.h"\n')
        self.assertEqual(len(self.problems()), 1)

    def test_tests_may_name_concrete_backends_and_their_support(self):
        self.write("tests/support/oracle.h", "")
        self.write("src/model/layer_test.cc", '#include <gtest/gtest.h>\n#include "backend/cpu/cpu_backend.h"\n#include "tests/support/oracle.h"\n')
        self.assertEqual(self.problems(), [])

    def test_a_test_does_not_escape_its_layer_otherwise(self):
        self.write("src/base/log_test.cc", '#include "ops/rms_norm.h"\n')
        self.assertEqual(len(self.problems()), 1)

    def test_code_does_not_include_test_support(self):
        self.write("tests/support/oracle.h", "")
        self.write("src/model/layer.cc", '#include "tests/support/oracle.h"\n')
        self.assertEqual(len(self.problems()), 1)

    def test_an_include_not_written_from_src_is_reported(self):
        self.write("src/base/log.cc", '#include "result.h"\n')
        self.assertEqual(
            self.problems(), ['src/base/log.cc:1: "result.h" lies in no folder of the layer table (includes are written from src/)']
        )

    def test_a_third_party_library_has_one_file(self):
        self.write("src/base/format.h", "#include <fmt/format.h>\n#include <fmt/ranges.h>\n")
        self.assertEqual(self.problems(), [])
        self.write("src/model/layer.cc", "#include <vector>\n#include <fmt/core.h>\n")
        self.assertEqual(
            self.problems(),
            [
                "src/base/format.h:1: <fmt> is also included by src/model/layer.cc; one file wraps a library",
                "src/model/layer.cc:2: <fmt> is also included by src/base/format.h; one file wraps a library",
            ],
        )

    def test_a_folder_may_wrap_a_library_in_its_sources_alone(self):
        self.write("ARCHITECTURE.md", TABLE.replace("| `src/ops`", "| `src/http` | sockets | base |\n| `src/ops`"))
        self.write("src/http/http_server.cc", "#include <boost/asio.hpp>\n")
        self.write("src/http/http_client.cc", "#include <boost/asio.hpp>\n#include <openssl/ssl.h>\n")
        self.assertEqual(self.problems(), [])
        self.write("src/http/http_server.h", "#include <boost/asio.hpp>\n")
        self.write("src/base/socket.cc", "#include <boost/asio.hpp>\n")
        self.assertEqual(
            self.problems(),
            [
                "src/base/socket.cc:1: <boost> belongs in the .cc files of src/http/",
                "src/http/http_server.h:1: <boost> belongs in the .cc files of src/http/",
            ],
        )

    def test_system_headers_are_no_library(self):
        for name in ("a", "b"):
            self.write(f"src/base/{name}.cc", "#include <sys/mman.h>\n#include <unistd.h>\n#include <immintrin.h>\n#include <cstdint>\n")
        self.assertEqual(self.problems(), [])

    def test_kernels_include_no_code_from_elsewhere(self):
        self.write("src/backend/cpu/kernels/shared/math.inc", "#include <cstdint>\n#include <algorithm>\n")
        self.write(
            "src/backend/cpu/kernels/avx2/table.cc",
            '#include "backend/cpu/kernels/shared/math.inc"\n#include <immintrin.h>\n#include "base/result.h"\n',
        )
        self.assertEqual(
            self.problems(),
            [
                "src/backend/cpu/kernels/avx2/table.cc:3: a kernel may not include base/result.h",
                "src/backend/cpu/kernels/shared/math.inc:2: a kernel may not include algorithm",
            ],
        )

    def test_a_folder_without_a_row_is_reported(self):
        self.write("src/extra/thing.h", "")
        self.assertEqual(self.problems(), ["src/extra/thing.h:1: its folder has no row in the layer table of ARCHITECTURE.md"])

    def test_a_row_that_allows_an_unknown_folder_is_reported(self):
        self.write("ARCHITECTURE.md", TABLE.replace("| contracts | base |", "| contracts | bass |"))
        self.assertIn("row src/ops allows 'bass'", "\n".join(self.problems()))

    def test_no_table_is_a_problem_not_a_pass(self):
        self.write("ARCHITECTURE.md", "# Design\n")
        self.assertEqual(len(self.problems()), 1)


if __name__ == "__main__":
    unittest.main()
