"""What `make install` and `make deb` lay down, and that it works from there. Usage: test_deb.py BUILD_DIR SOURCE_DIR"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "server"))

from server_process import ServerProcess  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(sys.argv[2]).resolve()
MODEL_FILES = sorted(path.name for path in (SOURCE / "models/espalier-nano").iterdir())


def output_of(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, **options)
    if result.returncode != 0:
        raise AssertionError(f"{command}: {result.stderr}")
    return result.stdout


class Installed:
    """What both ways of installing promise. `root` / `prefix` is where it lies now, `prefix` where it believes to lie."""

    def test_the_program_serves_the_model_that_came_along(self):
        environment = {key: value for key, value in os.environ.items() if key != "ESPALIER_MODEL"}
        with tempfile.TemporaryDirectory() as elsewhere:
            with ServerProcess(self.tree / "bin/espalier", None, env=environment, cwd=elsewhere) as server:
                self.assertEqual(server.get("/v1/models").json()["data"][0]["id"], "espalier-nano")
                self.assertEqual(server.post("/v1/completions", {"prompt": "hello", "max_tokens": 4}).json()["usage"]["completion_tokens"], 4)
        self.assertEqual(server.exit_code, 0)

    def test_the_unit_runs_the_program_that_was_installed(self):
        unit = (self.tree / "lib/systemd/system/espalier.service").read_text()
        command = re.search(r"^ExecStart=(\S+) (.*)$", unit, re.M)
        self.assertEqual(command[1], f"{self.prefix}/bin/espalier")
        self.assertEqual(command[2], "serve $ESPALIER_FLAGS")
        for setting in ("DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=\n", "MemoryDenyWriteExecute=yes"):
            self.assertIn(setting, unit)
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is absent: the unit was not verified")
        with tempfile.TemporaryDirectory() as directory:
            here = pathlib.Path(directory, "espalier.service")
            here.write_text(unit.replace(command[1], str(self.tree / "bin/espalier")))
            verified = subprocess.run(["systemd-analyze", "verify", here], capture_output=True, text=True, timeout=60)
        self.assertEqual((verified.returncode, verified.stderr), (0, ""))

    def test_model_documents_and_licence_are_there(self):
        self.assertEqual(sorted(path.name for path in (self.tree / "share/espalier/models/espalier-nano").iterdir()), MODEL_FILES)
        documents = self.tree / "share/doc/espalier"
        for name in ("README.md", "openapi.yaml", "operations.md", "agents.md", "server-api.md"):
            self.assertTrue((documents / name).is_file(), name)
        licence = documents / ("LICENSE" if (documents / "LICENSE").exists() else "copyright")
        self.assertEqual(licence.read_bytes(), (SOURCE / "LICENSE").read_bytes())


class Install(Installed, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.tree = cls.prefix = pathlib.Path(cls.directory.name, "opt/espalier")
        output_of("cmake", "--install", BUILD, "--prefix", cls.prefix)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()


@unittest.skipUnless(shutil.which("dpkg-deb") and shutil.which("dpkg-shlibdeps"), "dpkg-deb or dpkg-shlibdeps is absent")
class DebianPackage(Installed, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.package = output_of(SOURCE / "packaging/make_deb.sh", BUILD, cls.directory.name).strip()
        cls.root = pathlib.Path(cls.directory.name, "root")
        output_of("dpkg", "-x", cls.package, cls.root)
        cls.tree, cls.prefix = cls.root / "usr", "/usr"

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def field(self, name):
        return output_of("dpkg-deb", "-f", self.package, name).strip()

    def test_it_depends_on_every_library_that_the_program_loads(self):
        depends = self.field("Depends")
        needed = re.findall(r"NEEDED\s+(\S+)", output_of("objdump", "-p", self.tree / "bin/espalier"))
        self.assertIn("libstdc++.so.6", needed)
        for library in needed:
            if library.startswith("ld-linux"):
                continue
            path = next(line.split("=> ")[1].split(" ")[0] for line in output_of("ldd", self.tree / "bin/espalier").splitlines() if library in line)
            owners = subprocess.run(["dpkg", "-S", path, os.path.realpath(path), path.removeprefix("/usr")], capture_output=True, text=True).stdout
            packages = {line.split(":")[0] for line in owners.splitlines()}
            self.assertTrue(any(re.search(rf"\b{re.escape(package)}\b", depends) for package in packages), f"{library} of {packages}: {depends}")

    def test_everything_belongs_to_root_and_nothing_else_may_write(self):
        for line in output_of("dpkg-deb", "-c", self.package).splitlines():
            mode, owner, *_ = line.split()
            self.assertEqual(owner, "root/root", line)
            self.assertNotIn("w", mode[4:], line)

    def test_files_are_the_promised_ones(self):
        files = {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}
        self.assertIn("etc/default/espalier", files)
        places = ("etc/default/espalier", "usr/bin/espalier", "usr/lib/systemd/system/espalier.service", "usr/share/doc/espalier/",
                  "usr/share/espalier/models/espalier-nano/")
        self.assertEqual([name for name in files if not name.startswith(places)], [])
        with tempfile.TemporaryDirectory() as directory:
            output_of("dpkg-deb", "-e", self.package, directory)
            self.assertEqual(pathlib.Path(directory, "conffiles").read_text(), "/etc/default/espalier\n")
            sums = dict(reversed(line.split("  ", 1)) for line in pathlib.Path(directory, "md5sums").read_text().splitlines())
            for script in ("postinst", "prerm"):
                output_of("sh", "-n", pathlib.Path(directory, script))
        self.assertEqual(set(sums), files)
        for name, digest in sums.items():
            self.assertEqual(hashlib.md5((self.root / name).read_bytes()).hexdigest(), digest)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
