"""The page of --html in a real Chromium without network: what it shows is what --json says, however one looks at it."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

try:
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.chrome.service import Service
except ImportError:
    webdriver = None

BINARY = os.environ["ULLAGE_BINARY"]
SMALL = ["train", "meta-llama/Llama-3.2-1B-Instruct", "--gpu", "rtx-4090", "--micro-batch", "4"]
# Some 120,000 events.
LARGE = ["train", "meta-llama/Llama-3.1-405B", "--gpu", "h100-sxm-80gb", "--recompute", "full", "--grad-accum", "3"]


def ullage(*args):
    return subprocess.run([BINARY, *args], check=True, capture_output=True, text=True).stdout


def chromium():
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1200,1400",
                 "--force-device-scale-factor=1", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


@unittest.skipIf(webdriver is None or not os.path.exists("/usr/bin/chromedriver"), "no Chromium with its driver here")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.small = pathlib.Path(cls.folder.name, "small.html")
        cls.large = pathlib.Path(cls.folder.name, "large.html")
        ullage(*SMALL, "--html", str(cls.small))
        ullage(*LARGE, "--html", str(cls.large))
        cls.answer = json.loads(ullage(*SMALL, "--json"))
        cls.browser = chromium()

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.folder.cleanup()

    def open(self, page):
        self.browser.get(page.as_uri())
        return self.browser

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def range(self):
        return [int(n) for n in re.findall(r"\d+", self.find("#range").text)]

    def tearDown(self):
        faults = [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]
        self.assertEqual(faults, [])

    def test_refers_to_nothing_outside(self):
        text = self.small.read_text()
        self.assertEqual(re.findall(r"""(?:src|href)\s*=\s*["'][^"']*""", text), [])
        self.assertNotIn("@import", text)
        self.assertIn("default-src 'none'", text)
        self.open(self.small)
        loaded = self.browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
        self.assertEqual(loaded, [])

    def test_the_peak_is_where_json_has_it(self):
        self.open(self.small)
        self.find("[data-act=page_to_peak]").click()
        total = self.browser.execute_script("return ullage.series.total[ullage.chart.pointed]")
        self.assertEqual(total, self.answer["peak"]["allocated_bytes"])
        shown = f"{total / 2**30:.2f} GiB"
        self.assertTrue(self.find("#tip").text.startswith(shown), self.find("#tip").text)
        self.assertIn("parameters", self.find("#tip").text)

    def test_components_at_the_peak_are_those_of_json(self):
        self.open(self.small)
        live = self.browser.execute_script(
            "const s = ullage.series, row = s.highest(0, s.length);"
            "return Object.fromEntries(s.components.map((c, i) => [report.texts.en['component_' + c], s.live[i][row]]))")
        names = {"optimizer": "optimizer states"}
        for component in self.answer["components"]:
            if component["in"] == "allocated":
                self.assertEqual(live.get(names.get(component["name"], component["name"]), 0), component["bytes"])

    def test_hovering_reads_a_moment(self):
        self.open(self.small)
        canvas = self.find("#timeline")
        ActionChains(self.browser).move_to_element_with_offset(canvas, 0, 0).perform()
        middle = self.browser.execute_script("return ullage.chart.pointed")
        self.assertIn("GiB", self.find("#tip").text)
        ActionChains(self.browser).move_to_element_with_offset(canvas, canvas.size["width"] // 4, 0).perform()
        self.assertGreater(self.browser.execute_script("return ullage.chart.pointed"), middle)

    def test_zooms_by_button_wheel_and_key_and_comes_back(self):
        self.open(self.small)
        whole = self.range()
        self.find("[data-act=page_zoom_in]").click()
        by_button = self.range()
        self.assertAlmostEqual(by_button[1] - by_button[0], (whole[1] - whole[0]) / 2, delta=2)
        self.browser.execute_script(
            "document.getElementById('timeline').dispatchEvent(new WheelEvent('wheel', {deltaY: -120, clientX: 600, cancelable: true}))")
        by_wheel = self.range()
        self.assertLess(by_wheel[1] - by_wheel[0], by_button[1] - by_button[0])
        self.find("#timeline").send_keys("+")
        self.assertLess(self.range()[1] - self.range()[0], by_wheel[1] - by_wheel[0])
        self.find("#timeline").send_keys(Keys.HOME)
        self.assertEqual(self.range(), whole)

    def test_drags_and_never_leaves_the_timeline(self):
        self.open(self.small)
        self.find("[data-act=page_zoom_in]").click()
        before = self.range()
        canvas = self.find("#timeline")
        ActionChains(self.browser).move_to_element(canvas).click_and_hold().move_by_offset(-150, 0).release().perform()
        self.assertGreater(self.range()[0], before[0])
        for _ in range(5):
            ActionChains(self.browser).move_to_element(canvas).click_and_hold().move_by_offset(-400, 0).release().perform()
        self.assertLessEqual(self.range()[1], self.browser.execute_script("return ullage.series.length"))

    def test_walks_from_event_to_event(self):
        self.open(self.small)
        self.find("[data-act=page_to_peak]").click()
        at = self.browser.execute_script("return ullage.chart.pointed")
        self.find("#timeline").send_keys(Keys.ARROW_LEFT)
        self.assertEqual(self.browser.execute_script("return ullage.chart.pointed"), at - 1)

    def test_speaks_both_languages(self):
        self.open(self.small)
        self.assertIn("one training step", self.find("h1").text)
        self.find("#language").click()
        self.assertIn("一个训练步", self.find("h1").text)
        self.assertEqual(self.browser.execute_script("return document.documentElement.lang"), "zh")
        missing = self.browser.execute_script(
            "return Object.keys(report.texts.en).filter(k => !report.texts.zh[k])")
        self.assertEqual(missing, [])
        self.find("#language").click()
        self.assertIn("one training step", self.find("h1").text)

    def test_shows_every_card_where_there_are_several(self):
        page = pathlib.Path(self.folder.name, "cards.html")
        asked = ["serve", "meta-llama/Llama-3.1-8B", "--gpu", "rtx-4070,rtx-4090"]
        ullage(*asked, "--html", str(page))
        self.open(page)
        shown = self.find("#heading_ranks").text
        for rank in json.loads(ullage(*asked, "--json"))["ranks"]:
            self.assertIn(rank["name"], shown)
            self.assertIn(rank["gpu"], shown)
            self.assertIn(f'{rank["peak"]["process_bytes"] / 2**30:.2f} GiB', shown)
        self.open(self.small)
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "#heading_ranks"), [])

    def test_a_hundred_thousand_events_stay_fluid(self):
        measure = ("const times = []; const n = ullage.series.length; for (let i = 0; i < 40; ++i) {"
                   " ullage.chart.view(n * i / 100, n * (i + 50) / 100); times.push(ullage.chart.drawMilliseconds); }"
                   " return times.sort((a, b) => a - b)[20]")
        self.open(self.small)
        few = self.browser.execute_script("return ullage.series.length")
        fast = self.browser.execute_script(measure)
        self.open(self.large)
        many = self.browser.execute_script("return ullage.series.length")
        self.assertGreater(many, 100_000)
        self.assertGreater(many, 10 * few)
        # A frame costs by the pixels, not by the events.
        self.assertLess(self.browser.execute_script(measure), 4 * fast + 1)


if __name__ == "__main__":
    unittest.main()
