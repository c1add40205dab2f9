//! One session of a browser, through its driver: the commands of W3C's WebDriver that replaying needs.

use std::time::Duration;

use serde_json::{Value, json};

/// A command that is not answered for so long will not be: the driver itself waits for a page at most half of it.
const PATIENCE: Duration = Duration::from_secs(90);
/// The driver waits so long for a page to load.
const LOADING: Duration = Duration::from_secs(30);
/// The member of a JSON object that is an element, by the standard.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Why a command failed, sorted by what the caller can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Error {
    /// The browser or its driver is gone. A new one may do better.
    Gone(String),
    /// The browser says no: the code is the standard's.
    Refused { code: String, message: String },
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gone(why) => write!(f, "the browser ended: {why}"),
            Self::Refused { message, .. } => f.write_str(message),
        }
    }
}

pub(super) type Result<T, E = Error> = std::result::Result<T, E>;

/// An element of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Element(String);

impl Element {
    /// As an argument of a script.
    pub(super) fn as_argument(&self) -> Value {
        json!({ELEMENT: self.0})
    }

    pub(super) fn read(value: &Value) -> Option<Self> {
        value[ELEMENT].as_str().map(|id| Self(id.to_owned()))
    }
}

/// A session. The browser ends with it.
#[derive(Debug)]
pub(super) struct Session {
    http: reqwest::Client,
    base: String,
}

impl Session {
    /// Starts a browser.
    pub(super) async fn begin(port: u16, options: Value) -> Result<Self> {
        // The driver is on this machine: no proxy of the environment stands between.
        let http = gleaner_stages::client_builder().no_proxy().timeout(PATIENCE).build().map_err(|error| Error::Gone(error.to_string()))?;
        let driver = Self { http, base: format!("http://127.0.0.1:{port}") };
        let wanted = json!({
            "browserName": "chrome",
            // A dialog must not stop the run; what it said is not part of the page.
            "unhandledPromptBehavior": "dismiss",
            "timeouts": {"pageLoad": LOADING.as_millis() as u64, "script": 30_000, "implicit": 0},
            "goog:chromeOptions": options,
        });
        let answer = driver.post("/session", json!({"capabilities": {"alwaysMatch": wanted}})).await;
        let begun = answer.map_err(|error| Error::Gone(error.to_string()))?;
        let id = begun["sessionId"].as_str().ok_or_else(|| Error::Gone("the driver began no session".to_owned()))?;
        Ok(Self { base: format!("{}/session/{id}", driver.base), http: driver.http })
    }

    pub(super) async fn open(&self, url: &str) -> Result<()> {
        self.post("/url", json!({"url": url})).await.map(drop)
    }

    pub(super) async fn url(&self) -> Result<String> {
        Ok(self.get("/url").await?.as_str().unwrap_or_default().to_owned())
    }

    pub(super) async fn title(&self) -> Result<String> {
        Ok(self.get("/title").await?.as_str().unwrap_or_default().to_owned())
    }

    /// Runs the body of a function in the page. A promise is waited for.
    pub(super) async fn script(&self, body: &str, arguments: Value) -> Result<Value> {
        self.post("/execute/sync", json!({"script": body, "args": arguments})).await
    }

    pub(super) async fn click(&self, element: &Element) -> Result<()> {
        self.post(&format!("/element/{}/click", element.0), json!({})).await.map(drop)
    }

    pub(super) async fn clear(&self, element: &Element) -> Result<()> {
        self.post(&format!("/element/{}/clear", element.0), json!({})).await.map(drop)
    }

    pub(super) async fn type_into(&self, element: &Element, text: &str) -> Result<()> {
        self.post(&format!("/element/{}/value", element.0), json!({"text": text})).await.map(drop)
    }

    /// Input devices: see the standard's chapter on actions.
    pub(super) async fn actions(&self, sources: Value) -> Result<()> {
        self.post("/actions", json!({"actions": sources})).await.map(drop)
    }

    /// The page as it is shown, as PNG in base64.
    pub(super) async fn screenshot(&self) -> Result<String> {
        Ok(self.get("/screenshot").await?.as_str().unwrap_or_default().to_owned())
    }

    /// Into a child frame by its index; none is the page itself.
    pub(super) async fn enter_frame(&self, frame: Option<u64>) -> Result<()> {
        self.post("/frame", json!({"id": frame})).await.map(drop)
    }

    pub(super) async fn windows(&self) -> Result<Vec<String>> {
        let all = self.get("/window/handles").await?;
        Ok(all.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    pub(super) async fn enter_window(&self, window: &str) -> Result<()> {
        self.post("/window", json!({"handle": window})).await.map(drop)
    }

    pub(super) async fn close_window(&self) -> Result<()> {
        self.answer(self.http.delete(format!("{}/window", self.base))).await.map(drop)
    }

    /// A command of Chromium itself, for what the standard does not have.
    pub(super) async fn chromium(&self, command: &str, parameters: Value) -> Result<Value> {
        self.post("/goog/cdp/execute", json!({"cmd": command, "params": parameters})).await
    }

    async fn get(&self, path: &str) -> Result<Value> {
        self.answer(self.http.get(format!("{}{path}", self.base))).await
    }

    async fn post(&self, path: &str, body: Value) -> Result<Value> {
        self.answer(self.http.post(format!("{}{path}", self.base)).json(&body)).await
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> Result<Value> {
        let gone = |error: reqwest::Error| Error::Gone(error.without_url().to_string());
        let mut body: Value = request.send().await.map_err(gone)?.json().await.map_err(gone)?;
        let value = body["value"].take();
        let Some(code) = value["error"].as_str() else { return Ok(value) };
        // The first line says it; the others are the driver's stack.
        let message = value["message"].as_str().unwrap_or(code).lines().next().unwrap_or(code).to_owned();
        Err(if is_gone(code, &message) { Error::Gone(message) } else { Error::Refused { code: code.to_owned(), message } })
    }
}

/// Chromium's driver reports a browser that ended in several ways.
fn is_gone(code: &str, message: &str) -> bool {
    let said = ["not reachable", "disconnected", "not connected to DevTools", "tab crashed", "session deleted", "DevToolsActivePort"];
    matches!(code, "invalid session id" | "disconnected" | "chrome not reachable" | "tab crashed")
        || said.iter().any(|said| message.contains(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_that_ended_is_told_from_one_that_refuses() {
        assert!(is_gone("invalid session id", "invalid session id"));
        assert!(is_gone("unknown error", "unknown error: session deleted as the browser has closed the connection"));
        assert!(!is_gone("no such element", "no such element: #disconnect"));
    }
}
