"""The fuzz driver finds planted faults, leaves the input, and repeats itself. Usage: driver_test.py PROGRAM."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)


class Driver(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "seeds").mkdir()
        self.crash_file = self.folder / "crash"

    def run_driver(self, *arguments):
        command = [PROGRAM, "--crash-file", str(self.crash_file), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    def seed(self, text):
        (self.folder / "seeds" / f"seed{len(text)}").write_text(text)

    def finds(self, seed, *arguments):
        self.seed(seed)
        found = self.run_driver("--seed", 7, "--seconds", 60, *arguments, self.folder / "seeds")
        self.assertNotEqual(found.returncode, 0)
        self.assertIn(f"the input is in {self.crash_file}", found.stderr)
        self.assertRegex(self.crash_file.read_bytes(), rb"(?s)^%c\d{12}" % seed[0].encode())
        again = self.run_driver(*arguments, self.crash_file)
        self.assertEqual(again.returncode, found.returncode)
        return found

    def test_finds_an_abort(self):
        self.finds("a1 some more text")

    def test_finds_a_bad_access(self):
        self.finds("s1 some more text")

    def test_finds_an_endless_loop(self):
        self.assertIn("ran into the time limit", self.finds("l1 some more text", "--timeout", 1).stderr)

    def test_says_how_much_it_ran_when_nothing_is_found(self):
        self.seed("harmless")
        result = self.run_driver("--runs", 500, "--seed", 3, self.folder / "seeds")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1 seeds, --seed 3", result.stdout)
        self.assertRegex(result.stdout, r"500 runs, \d+ a second, nothing found")
        self.assertFalse(self.crash_file.exists())

    def test_without_a_limit_only_the_seeds_run(self):
        self.seed("one")
        self.seed("three")
        self.assertIn("2 runs", self.run_driver(self.folder / "seeds").stdout)

    def test_the_same_seed_finds_the_same_input(self):
        self.finds("a1 some more text")
        first = self.crash_file.read_bytes()
        self.run_driver("--seed", 7, "--seconds", 60, self.folder / "seeds")
        self.assertEqual(self.crash_file.read_bytes(), first)

    def test_wrong_use_is_told(self):
        for arguments in (["--seconds", "x", self.folder], ["--speed", "1", self.folder], ["--runs"], [], [self.folder / "none"], [self.folder / "seeds"]):
            result = self.run_driver(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn("fuzz: ", result.stderr)


if __name__ == "__main__":
    unittest.main()
