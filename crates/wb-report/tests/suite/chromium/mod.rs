//! Controls a headless Chromium by the DevTools protocol over a pipe, without a port or a library.

#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::unwrap_used, reason = "a browser that misbehaves ends the test")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A browser with one open page; dropping it ends the process.
pub(crate) struct Chromium {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: String,
    last: u64,
    /// The events since the page was opened.
    pub(crate) events: Vec<Value>,
    _profile: tempfile::TempDir,
}

/// Starts a browser; without Chromium prints that the test is skipped.
pub(crate) fn browser() -> Option<Chromium> {
    let browser = Chromium::start();
    if browser.is_none() {
        wb_test_skip::skip!("no chromium here");
    }
    browser
}

/// A page in a temporary folder.
pub(crate) struct PageFile {
    _folder: tempfile::TempDir,
    pub(crate) file: PathBuf,
}

impl PageFile {
    /// Writes a page.
    pub(crate) fn write(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.html");
        std::fs::write(&file, text).unwrap();
        Self { _folder: folder, file }
    }
}

impl Chromium {
    /// Starts Chromium; none if it is not installed.
    fn start() -> Option<Self> {
        let profile = tempfile::tempdir().unwrap();
        let flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-component-update \
                     --disable-background-networking --disable-sync --hide-scrollbars --remote-debugging-pipe";
        // The protocol uses file descriptors 3 and 4.
        let script =
            format!("exec chromium {flags} --user-data-dir=\"$1\" about:blank 3<&0 4>&1 </dev/null >/dev/null");
        let mut process = Command::new("sh")
            .args(["-c", &script, "sh"])
            .arg(profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let input = process.stdin.take()?;
        let output = BufReader::new(process.stdout.take()?);
        let mut browser =
            Self { process, input, output, session: String::new(), last: 0, events: Vec::new(), _profile: profile };
        let targets = browser.try_call("Target.getTargets", &json!({}))?;
        let target = &targets["targetInfos"].as_array()?.iter().find(|target| target["type"] == "page")?["targetId"];
        let attached = browser.call("Target.attachToTarget", &json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].as_str()?.to_owned();
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Opens a file at a width in pixels, in a light or dark scheme, and waits until it is loaded.
    pub(crate) fn open(&mut self, file: &Path, width: u32, scheme: &str) {
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", &json!({ "features": [feature] }));
        self.events.clear();
        self.call("Page.navigate", &json!({ "url": format!("file://{}", file.display()) }));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.read().expect("the browser ended");
            self.events.push(event);
        }
    }

    /// Evaluates an expression in the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let request = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let reply = self.call("Runtime.evaluate", &request);
        assert!(reply.get("exceptionDetails").is_none(), "{expression}: {reply}");
        reply["result"]["value"].clone()
    }

    /// Simulates pressing a key.
    pub(crate) fn press(&mut self, key: &str, code: &str, number: u32, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event =
                json!({ "type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number, "text": text });
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// The whole page as PNG in base64.
    pub(crate) fn screenshot(&mut self) -> String {
        let request = json!({ "format": "png", "captureBeyondViewport": true });
        self.call("Page.captureScreenshot", &request)["data"].as_str().unwrap().to_owned()
    }

    /// Enables or disables scripts on pages opened from now on.
    pub(crate) fn scripts(&mut self, run: bool) {
        self.call("Emulation.setScriptExecutionDisabled", &json!({ "value": !run }));
    }

    /// Asserts that the open page requested nothing but its own file and logged nothing.
    pub(crate) fn assert_quiet(&self, file: &Path) {
        for event in &self.events {
            let log_methods = ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"];
            assert!(!log_methods.contains(&event["method"].as_str().unwrap_or_default()), "{event}");
            let url = event["params"]["request"]["url"].as_str().unwrap_or("data:");
            assert!(url.starts_with("data:") || url == format!("file://{}", file.display()), "fetched {url}");
        }
    }

    /// Asserts that the open page does not scroll horizontally; names elements that are too wide.
    pub(crate) fn assert_fits(&mut self, width: u32, state: &str) {
        let wide = "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 \
                    && !e.closest('.scroll, .live, svg')).map(e => e.outerHTML.slice(0, 80)).join('\\n')";
        let scrolled = self.eval("document.documentElement.scrollWidth");
        assert_eq!(scrolled, width, "{state}: {}", self.eval(wide).as_str().unwrap_or_default());
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|| panic!("the browser ended at {method}"))
    }

    fn try_call(&mut self, method: &str, params: &Value) -> Option<Value> {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        self.input.write_all(format!("{message}\0").as_bytes()).ok()?;
        loop {
            let reply = self.read()?;
            if reply["id"] == self.last {
                assert!(reply.get("error").is_none(), "{method}: {reply}");
                return Some(reply["result"].clone());
            }
            self.events.push(reply);
        }
    }

    fn read(&mut self) -> Option<Value> {
        let mut message = Vec::new();
        self.output.read_until(0, &mut message).ok()?;
        message.pop()?;
        serde_json::from_slice(&message).ok()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.input.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let _ = self.process.wait();
    }
}
