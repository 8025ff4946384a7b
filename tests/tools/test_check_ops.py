"""check_ops.py on a small tree made for the purpose."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_ops  # noqa: E402


class CheckOps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("src/ops/ops.h", "  virtual void rms_norm(const RmsNormArgs& args) = 0;\n  virtual void embed(const EmbedArgs& args) = 0;\n")
        self.write("src/ops/batch_view.h")
        self.write("bench/ops_bench.cc", "BENCHMARK(BM_RmsNorm);\nBENCHMARK(BM_Embed);\n")
        for op in ("rms_norm", "embed"):
            self.write(f"src/ops/{op}.h")
            self.write(f"src/backend/{op}_test.cc")
            self.write(f"src/backend/reference/{op}.cc")
            self.write(f"src/backend/cpu/{op}.cc")

    def write(self, name, text=""):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def problems_without(self, name):
        (self.root / name).unlink()
        return check_ops.check(self.root)

    def test_a_complete_set_has_no_gaps(self):
        self.assertEqual(check_ops.check(self.root), [])

    def test_a_missing_backend_file(self):
        self.assertEqual(self.problems_without("src/backend/cpu/embed.cc"), ["embed: src/backend/cpu/embed.cc is missing"])

    def test_a_missing_test(self):
        self.assertEqual(self.problems_without("src/backend/rms_norm_test.cc"), ["rms_norm: src/backend/rms_norm_test.cc is missing"])

    def test_a_missing_contract(self):
        self.assertEqual(self.problems_without("src/ops/embed.h"), ["embed: in Ops, but src/ops/embed.h is missing"])

    def test_a_header_that_is_neither_an_op_nor_shared(self):
        self.write("src/ops/tricks.h")
        self.assertIn("tricks: no 'virtual void tricks(...) = 0;' in src/ops/ops.h", "\n".join(check_ops.check(self.root)))

    def test_a_missing_benchmark(self):
        self.write("bench/ops_bench.cc", "BENCHMARK(BM_RmsNorm);\nBENCHMARK(BM_EmbedAll);\n")
        self.assertEqual(check_ops.check(self.root), ["embed: no BM_Embed in bench/ops_bench.cc"])
        self.assertEqual(len(self.problems_without("bench/ops_bench.cc")), 2)

    def test_a_new_backend_folder_is_checked_at_once(self):
        self.write("src/backend/cuda/embed.cc")
        self.assertEqual(check_ops.check(self.root), ["rms_norm: src/backend/cuda/rms_norm.cc is missing"])

    def test_an_empty_tree_is_not_complete(self):
        for path in (self.root / "src/ops").iterdir():
            path.unlink()
        self.assertIn("src/ops: no contracts", check_ops.check(self.root))


if __name__ == "__main__":
    unittest.main()
