//! A headless browser for tests of pages.
//!
//! Without its driver a test is left out, unless programs are expected (`SPANDREL_EXPECTS_PROGRAMS`). Pictures of pages
//! are written to the folder in `SPANDREL_SCREENSHOTS`.

use std::future::Future;
use std::io::{BufRead as _, BufReader, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::task::Poll;
use std::time::{Duration, Instant};

use fantoccini::wd::Capabilities;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

use crate::{TEST_TIMEOUT, http_exchange, http_request};

/// The number of attempts to start the driver.
const ATTEMPTS: usize = 5;

/// A running driver of the browser.
struct Driver {
    process: Child,
    /// The address of the driver's HTTP server, as `HOST:PORT`.
    address: String,
}

impl Driver {
    /// `None` if the driver is not installed; that is an error where programs are expected.
    fn start() -> Option<Self> {
        // It takes one port for IPv4 and IPv6, and ends if another process has got that port of one of them just now.
        for _ in 0..ATTEMPTS {
            let spawned =
                Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
            let Ok(process) = spawned else {
                let expected = std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_some();
                assert!(!expected, "chromedriver is absent (packages chromium chromium-driver)");
                eprintln!("not run: chromedriver is absent (packages chromium chromium-driver)");
                return None;
            };
            let mut driver = Self { process, address: String::new() };
            if let Some(port) = driver.port() {
                driver.address = format!("127.0.0.1:{port}");
                return Some(driver);
            }
        }
        panic!("chromedriver ended at each of {ATTEMPTS} attempts");
    }

    /// The port that it tells; `None` if it ends.
    fn port(&mut self) -> Option<String> {
        let mut output = BufReader::new(self.process.stdout.take()?);
        let told = output.by_ref().lines().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            Some(port.trim().trim_end_matches('.').to_owned())
        });
        // Not closed: it would end at its next line.
        self.process.stdout = Some(output.into_inner());
        told
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// A page in the browser.
#[derive(Debug)]
pub struct Page {
    client: Client,
    /// `HOST:PORT` of its driver.
    driver: String,
}

/// Runs a test in a browser, which ends also if the test fails.
///
/// # Panics
/// If the test fails or does not end in time, or the browser does not start.
pub fn in_browser<F: Future<Output = ()>>(test: impl FnOnce(Page) -> F) {
    let Some(driver) = Driver::start() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let arguments =
            ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"];
        let capabilities: Capabilities = [
            ("goog:chromeOptions".to_owned(), json!({ "args": arguments, "binary": chromium() })),
            ("goog:loggingPrefs".to_owned(), json!({ "browser": "ALL" })),
        ]
        .into_iter()
        .collect();
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://{}", driver.address))
            .await;
        let client = client.expect("the browser starts");
        let closing = client.clone();
        let page = Page { client, driver: driver.address.clone() };
        page.resize(1280, 900).await;
        let ended = tokio::time::timeout(3 * TEST_TIMEOUT, caught(test(page))).await;
        // The browser would go on without its driver.
        _ = closing.close().await;
        if let Err(panic) = ended.expect("the test ends in time") {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Runs a future that may panic.
async fn caught(future: impl Future<Output = ()>) -> std::thread::Result<()> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        polled.map_or_else(|panic| Poll::Ready(Err(panic)), |poll| poll.map(Ok))
    })
    .await
}

fn chromium() -> &'static str {
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
        .into_iter()
        .find(|program| std::path::Path::new(program).exists())
        .expect("chromium is installed where its driver is")
}

/// Every method panics if the browser refuses, or the page does not come to the awaited state in time.
impl Page {
    /// Goes to an address.
    pub async fn open(&self, url: &str) {
        self.client.goto(url).await.unwrap();
    }

    /// Sets the size of the window in pixels.
    pub async fn resize(&self, width: u32, height: u32) {
        self.client.set_window_size(width, height).await.unwrap();
    }

    /// The value of a script's body.
    pub async fn run(&self, script: &str, arguments: Vec<Value>) -> Value {
        self.client.execute(script, arguments).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Waits until the value of an expression is true.
    pub async fn wait(&self, expression: &str) {
        let begin = Instant::now();
        while self.run(&format!("return Boolean({expression})"), vec![]).await != json!(true) {
            if begin.elapsed() > TEST_TIMEOUT {
                let text = self.run("return document.body.innerText", vec![]).await;
                panic!("{expression} does not hold: {}", text.as_str().unwrap_or_default());
            }
            tokio::time::sleep(Duration::from_millis(30)).await; // between two looks
        }
    }

    /// Waits for a text on the page.
    pub async fn wait_for_text(&self, text: &str) {
        self.wait(&format!("document.body.innerText.includes({})", json!(text))).await;
    }

    /// Clicks an element, once it is there.
    pub async fn click(&self, selector: &str) {
        self.wait(&format!("document.querySelector({})", json!(selector))).await;
        // Away from the header, which stays at the top.
        let script = "document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })";
        self.run(script, vec![json!(selector)]).await;
        let element = self.client.find(Locator::Css(selector)).await.unwrap();
        element.click().await.unwrap_or_else(|error| panic!("{selector}: {error}"));
    }

    /// Moves the mouse to the middle of an element.
    pub async fn hover(&self, selector: &str) {
        let script = "const it = document.querySelector(arguments[0]); it.scrollIntoView({ block: 'center' });
            const { x, y, width, height } = it.getBoundingClientRect();
            return [Math.round(x + width / 2), Math.round(y + height / 2)];";
        let place = self.run(script, vec![json!(selector)]).await;
        let step = json!({ "type": "pointerMove", "duration": 0, "x": place[0], "y": place[1] });
        let mouse = json!({ "type": "pointer", "id": "mouse", "actions": [step] });
        self.post("actions", &json!({ "actions": [mouse] })).await;
    }

    /// The messages in the browser's console since the last call: errors of scripts, and of addresses that cannot be
    /// loaded.
    pub async fn messages(&self) -> Vec<String> {
        let entries = self.post("se/log", &json!({ "type": "browser" })).await;
        entries.as_array().unwrap().iter().map(|entry| entry["message"].to_string()).collect()
    }

    /// Sets an input or a choice as a user does: with its events.
    pub async fn set(&self, selector: &str, value: &str) {
        let script = "const it = document.querySelector(arguments[0]); if (!it) return false;
            if (it.type === 'checkbox') it.checked = arguments[1] === 'true';
            else if (it.tagName === 'SELECT') {
              const found = [...it.options].find((option) => option.textContent === arguments[1] || option.value === arguments[1]);
              if (!found) return false;
              it.value = found.value;
            } else it.value = arguments[1];
            it.dispatchEvent(new Event('input', { bubbles: true })); it.dispatchEvent(new Event('change', { bubbles: true }));
            return true;";
        assert_eq!(self.run(script, vec![json!(selector), json!(value)]).await, json!(true), "{selector} = {value}");
    }

    /// Keys for the element with the focus.
    pub async fn keys(&self, keys: &str) {
        self.client.active_element().await.unwrap().send_keys(keys).await.unwrap();
    }

    /// Writes pictures of the page in both colour schemes to the folder in `SPANDREL_SCREENSHOTS`, if that is set.
    pub async fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("SPANDREL_SCREENSHOTS") else { return };
        for scheme in ["light", "dark"] {
            let feature = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
            self.command("Emulation.setEmulatedMedia", feature).await;
            let picture = self.client.screenshot().await.unwrap();
            std::fs::write(std::path::Path::new(&folder).join(format!("{name}-{scheme}.png")), picture).unwrap();
        }
    }

    /// A command of the browser's developer protocol, which the driver passes on.
    pub async fn command(&self, name: &str, parameters: Value) {
        self.post("goog/cdp/execute", &json!({ "cmd": name, "params": parameters })).await;
    }

    /// Posts a command to the driver; returns its value.
    async fn post(&self, path: &str, body: &Value) -> Value {
        let session = self.client.session_id().await.unwrap().unwrap();
        let body = body.to_string();
        let fields = format!("Host: {}\r\n", self.driver);
        let request = http_request(&format!("POST /session/{session}/{path}"), &fields, &body);
        let response = http_exchange(&self.driver, &request).unwrap();
        assert_eq!(response.status, 200, "{path}: {response:?}");
        response.json()["value"].take()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;
    use crate::wait_until;

    /// The processes that run now, with their parents.
    fn processes() -> BTreeMap<u32, u32> {
        let ids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
        ids.filter_map(|id: u32| {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            let mut fields = stat.rsplit_once(") ")?.1.split(' ');
            let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
            (state != "Z").then_some((id, parent))
        })
        .collect()
    }

    #[test]
    fn the_browser_ends_if_the_test_fails() {
        let mut started = Vec::new();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            in_browser(async |_| {
                let all = processes();
                let parents = |id: u32| std::iter::successors(Some(id), |id| all.get(id).copied());
                let is_ours = |id: &u32| parents(*id).skip(1).any(|id| id == std::process::id());
                started.extend(all.keys().copied().filter(is_ours));
                panic!("intended");
            });
        }));
        if outcome.is_ok() {
            return; // there is no browser
        }
        assert!(started.len() >= 2, "the driver and the browser: {started:?}");
        wait_until("the end of all processes", || {
            let all = processes();
            !started.iter().any(|id| all.contains_key(id))
        });
    }
}
