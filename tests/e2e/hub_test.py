"""The program and a Hub on this machine: what it asks for, what it keeps, and that it does without the library and the
network where nothing is to be fetched."""

import http.server
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import unittest

BINARY = os.environ["ULLAGE_BINARY"]
COMMIT = "b" * 40
CONFIG = json.dumps({"model_type": "gpt2", "n_layer": 2})
MODEL = "some-org/new-net"


class Hub(http.server.BaseHTTPRequestHandler):
    """One model with a configuration, its commit and its etag, as the Hub sends them."""

    asked = []

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, with_body):
        self.asked.append((self.path, self.headers.get("Authorization")))
        there = self.path in (f"/{MODEL}/resolve/main/config.json", f"/{MODEL}/resolve/{COMMIT}/config.json")
        self.send_response(200 if there else 404)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", '"e1"')
        if not there:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.send_header("Content-Length", str(len(CONFIG) if there else 0))
        self.end_headers()
        if there and with_body:
            self.wfile.write(CONFIG.encode())

    def log_message(self, *_):
        pass


class HubTest(unittest.TestCase):
    def setUp(self):
        Hub.asked = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.home = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.home.name) / "hub" / "models--some-org--new-net"

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()
        self.home.cleanup()

    def run_program(self, *words, **variables):
        surroundings = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HF_HOME": self.home.name,
                        "HF_ENDPOINT": f"http://127.0.0.1:{self.server.server_port}", "no_proxy": "127.0.0.1", **variables}
        return subprocess.run([BINARY, *words], capture_output=True, text=True, timeout=60, check=False, env=surroundings)

    def test_a_model_is_fetched_once(self):
        for _ in range(2):
            done = self.run_program("inspect", MODEL, "--json", HF_TOKEN="hf_x")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(json.loads(done.stdout)["layer_count"], 2)
        self.assertEqual(Hub.asked, [(f"/{MODEL}/resolve/main/config.json", "Bearer hf_x")])
        self.assertEqual((self.folder / "refs" / "main").read_text(), COMMIT)
        kept = self.folder / "snapshots" / COMMIT / "config.json"
        self.assertEqual(os.readlink(kept), "../../blobs/e1")
        self.assertEqual(kept.read_text(), CONFIG)

    def test_what_was_fetched_before_is_read_offline(self):
        kept = self.folder / "snapshots" / COMMIT
        kept.mkdir(parents=True)
        (self.folder / "refs").mkdir()
        (self.folder / "refs" / "main").write_text(COMMIT)
        (kept / "config.json").write_text(CONFIG)
        done = self.run_program("inspect", MODEL, "--quiet", HF_HUB_OFFLINE="1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(Hub.asked, [])

    def test_offline_is_one_line(self):
        done = self.run_program("inspect", MODEL, HF_HUB_OFFLINE="1")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn(f"{MODEL}/config.json: is not on this machine, and HF_HUB_OFFLINE forbids to fetch it", done.stderr)

    def test_the_program_is_not_linked_with_libcurl(self):
        needed = subprocess.run(["readelf", "-d", BINARY], capture_output=True, text=True, check=False).stdout
        self.assertNotIn("libcurl", needed)


if __name__ == "__main__":
    unittest.main()
