//! A browser that is driven through WebDriver: Debian's `chromium` with `chromedriver`.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::sandbox::wait_for;

/// The key of an element in WebDriver's JSON.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The zone of the visitor, and how far its clocks are ahead of UTC, s.
pub const TIME_ZONE: (&str, i32) = ("Asia/Kolkata", 5 * 3_600 + 1_800);

pub struct Browser {
    driver: Child,
    /// URL of the session.
    session: String,
}

/// An element of the page.
#[derive(Clone, Debug)]
pub struct Element(String);

impl Browser {
    /// Starts a browser without a window.
    pub fn start() -> Browser {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port").port();
        let mut driver = Command::new("chromedriver");
        // The visitor is at home half an hour beside whole hours of UTC.
        driver.arg(format!("--port={port}")).env("TZ", TIME_ZONE.0).stdout(Stdio::null()).stderr(Stdio::null());
        let driver = driver.spawn().expect("chromedriver: run `bash tests/run --browser`, which installs it");
        let server = format!("http://127.0.0.1:{port}");
        wait_for("chromedriver answers", || ureq::get(format!("{server}/status")).call().ok());
        // Chromium's own sandbox does not work as root, and a small /dev/shm is not enough for it.
        let args =
            ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1200,1000"];
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": args},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }}});
        let mut browser = Browser { driver, session: format!("{server}/session") };
        let session = browser.post("", capabilities);
        browser.session += &format!("/{}", session["sessionId"].as_str().expect("a session"));
        browser
    }

    #[track_caller]
    fn post(&self, path: &str, body: Value) -> Value {
        self.try_post(path, body).unwrap_or_else(|why| panic!("{path}: {why}"))
    }

    fn try_post(&self, path: &str, body: Value) -> Result<Value, String> {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let answer = agent.post(format!("{}{path}", self.session)).header("content-type", "application/json");
        let mut answer = answer.send(body.to_string()).map_err(|error| error.to_string())?;
        let body =
            answer.body_mut().with_config().limit(64 << 20).read_to_string().map_err(|error| error.to_string())?;
        let answer: Value = serde_json::from_str(&body).map_err(|error| error.to_string())?;
        match answer["value"].get("error") {
            Some(error) => Err(format!("{error}: {}", answer["value"]["message"])),
            None => Ok(answer["value"].clone()),
        }
    }

    #[track_caller]
    pub fn open(&self, url: &str) {
        self.post("/url", json!({"url": url}));
    }

    /// The value that a script returns.
    #[track_caller]
    pub fn script(&self, script: &str) -> Value {
        self.post("/execute/sync", json!({"script": script, "args": []}))
    }

    /// The value that a script passes to its last argument.
    #[track_caller]
    pub fn async_script(&self, script: &str) -> Value {
        self.post("/execute/async", json!({"script": script, "args": []}))
    }

    #[track_caller]
    pub fn find(&self, css: &str) -> Element {
        let found = self.post("/element", json!({"using": "css selector", "value": css}));
        Element(found[ELEMENT].as_str().unwrap_or_else(|| panic!("no {css}: {found}")).to_owned())
    }

    #[track_caller]
    pub fn click(&self, css: &str) {
        let Element(id) = self.find(css);
        self.post(&format!("/element/{id}/click"), json!({}));
    }

    #[track_caller]
    pub fn type_into(&self, css: &str, text: &str) {
        let Element(id) = self.find(css);
        self.post(&format!("/element/{id}/value"), json!({"text": text}));
    }

    /// Presses a key, wherever the focus is.
    #[track_caller]
    pub fn press(&self, key: &str) {
        let keys = json!([{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]);
        self.post("/actions", json!({"actions": [{"type": "key", "id": "keyboard", "actions": keys}]}));
    }

    /// The path and query of the page.
    pub fn path(&self) -> String {
        let path = self.script("return location.pathname + location.search");
        path.as_str().expect("a path").to_owned()
    }

    pub fn text(&self, css: &str) -> String {
        let text = self.script(&format!("return document.querySelector({}).innerText", json!(css)));
        text.as_str().expect("a text").to_owned()
    }

    /// A command of the browser's own protocol.
    #[track_caller]
    pub fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.post("/goog/cdp/execute", json!({"cmd": command, "params": parameters}))
    }

    pub fn prefer_colour_scheme(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.devtools("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    pub fn set_size(&self, width: u32, height: u32, mobile: bool) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.devtools("Emulation.setDeviceMetricsOverride", size);
    }

    /// What was logged since the last call: the console (`browser`) or the requests (`performance`).
    pub fn log(&self, kind: &str) -> Vec<Value> {
        self.post("/se/log", json!({"type": kind})).as_array().expect("a list").clone()
    }

    /// The URLs that were requested since the last call.
    pub fn requested_urls(&self) -> Vec<String> {
        let messages = self.log("performance").into_iter().filter_map(|entry| {
            let message: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let sent = message["message"]["method"] == "Network.requestWillBeSent";
            sent.then(|| message["message"]["params"]["request"]["url"].as_str().unwrap_or_default().to_owned())
        });
        messages.collect()
    }

    /// The whole page as PNG, in Base64.
    pub fn screenshot(&self) -> String {
        let shot = self.devtools("Page.captureScreenshot", json!({"captureBeyondViewport": true}));
        shot["data"].as_str().expect("an image").to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        _ = ureq::delete(&self.session).call();
        _ = self.driver.kill();
        _ = self.driver.wait();
    }
}
