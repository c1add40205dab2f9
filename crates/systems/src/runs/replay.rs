//! One line of the data: the steps one after the other, what became of each, and the pictures.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use serde_json::{Value, json};

use super::browser::Browser;
use super::driver::{Error, Session};
use super::egress::Egress;
use super::page::{self, Fault};
use super::proxy::Proxy;
use super::recording::{Action, Step, opened};
use super::secrets::Secrets;

const COVER: &str = include_str!("cover.js");
const UNCOVER: &str = "for (const [element, style] of window.__gleanerCovered ?? []) {
    if (style === null) element.removeAttribute('style'); else element.setAttribute('style', style); }
    delete window.__gleanerCovered";
/// Pictures larger than this are not kept.
pub(super) const LARGEST: usize = 5_000_000;

/// A line that is ready to be replayed.
#[derive(Debug)]
pub(super) struct Line {
    pub steps: Vec<Step>,
    pub secrets: Secrets,
    pub egress: Egress,
}

/// How it went. Everything in it is masked.
#[derive(Debug)]
pub(super) struct Replayed {
    pub error: Option<String>,
    pub failed_step: Option<usize>,
    pub trace: Vec<Value>,
    pub took: Duration,
    pub pictures: Vec<Picture>,
}

#[derive(Debug)]
pub(super) struct Picture {
    pub step: usize,
    pub name: String,
    /// PNG, in base64.
    pub png: String,
}

/// Replays the line in a browser that remembers nothing of the lines before. An error means that the browser is gone.
pub(super) async fn replay(browser: &Browser, proxy: &Proxy, line: &Line) -> Result<Replayed, String> {
    let began = Instant::now();
    let session = &browser.session;
    forget(session, &line.steps).await.map_err(|error| error.to_string())?;
    proxy.set(line.egress.clone());
    proxy.refused();
    let mut done = Replayed { error: None, failed_step: None, trace: Vec::new(), took: Duration::ZERO, pictures: Vec::new() };
    for (n, step) in (1..).zip(&line.steps) {
        let (trace, fault) = one(session, proxy, line, n, step).await?;
        done.trace.push(line.secrets.mask_all(trace));
        let name = match (&fault, &step.action) {
            (Some(_), _) => Some("failed"),
            (None, Action::Screenshot(name)) => Some(name.as_deref().unwrap_or("screenshot")),
            (None, _) => None,
        };
        if let Some(name) = name {
            let name = format!("{n}-{}.png", plain(&line.secrets.mask(name)));
            match picture(session, &line.secrets).await {
                Ok(png) => done.pictures.push(Picture { step: n, name, png }),
                Err(Fault::Gone(why)) => return Err(why),
                Err(Fault::Step(why)) => note(&mut done.trace, "screenshot", &line.secrets.mask(&why)),
            }
        }
        if let Some(why) = fault {
            done.error = Some(line.secrets.mask(&format!("step {n} ({}): {why}", step.verb)));
            done.failed_step = Some(n);
            break;
        }
    }
    done.took = began.elapsed();
    Ok(done)
}

/// One step with its retries: its trace, and why it failed.
async fn one(session: &Session, proxy: &Proxy, line: &Line, n: usize, step: &Step) -> Result<(Value, Option<String>), String> {
    let began = Instant::now();
    let mut tries = 0;
    let outcome = loop {
        tries += 1;
        let tried = match permitted(&line.egress, step).await {
            Ok(()) => page::perform(session, step).await,
            Err(why) => Err(Fault::Step(why)),
        };
        match tried {
            Err(Fault::Gone(why)) => return Err(why),
            Err(Fault::Step(_)) if tries <= step.retries => {}
            other => break other,
        }
    };
    let refused = proxy.refused();
    let mut trace =
        json!({"step": n, "do": step.verb, "status": "passed", "duration_ms": began.elapsed().as_millis() as u64, "tries": tries});
    if let Ok(url) = session.url().await {
        trace["url"] = json!(url);
    }
    if !refused.is_empty() {
        trace["refused"] = json!(refused);
    }
    Ok(match outcome {
        Ok(selector) => {
            if let Some(selector) = selector {
                trace["selector"] = json!(selector);
            }
            (trace, None)
        }
        Err(Fault::Step(why) | Fault::Gone(why)) => {
            // The page may have failed because it could not reach something.
            let why = refused
                .first()
                .filter(|refused| !why.contains(refused.as_str()))
                .map_or(why.clone(), |refused| format!("{why} ({refused})"));
            trace["status"] = json!("failed");
            trace["error"] = json!(why);
            (trace, Some(why))
        }
    })
}

/// Says clearly what the proxy would refuse without words.
async fn permitted(egress: &Egress, step: &Step) -> Result<(), String> {
    let Action::Open { url } = &step.action else { return Ok(()) };
    let url = Url::parse(url).map_err(|error| format!("{url:?} is no address: {error}"))?;
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(80));
    egress.resolve(host, port).await.map(drop)
}

/// A picture of what is shown, with secrets covered. If they cannot be, there is none.
async fn picture(session: &Session, secrets: &Secrets) -> Result<String, Fault> {
    session.enter_frame(None).await?;
    if !secrets.values().is_empty() {
        let covered = session.script(COVER, json!([secrets.values()])).await?;
        if covered != true {
            session.script(UNCOVER, json!([])).await?;
            return Err(Fault::Step("no screenshot: the page has a frame of another site, which may show a secret".to_owned()));
        }
    }
    let png = session.screenshot().await?;
    if !secrets.values().is_empty() {
        session.script(UNCOVER, json!([])).await?;
    }
    if STANDARD.decode(&png).is_ok_and(|bytes| bytes.len() <= LARGEST) {
        Ok(png)
    } else {
        Err(Fault::Step("no screenshot: it is too large".to_owned()))
    }
}

/// Cookies, stored data, windows and sizes of the line before.
async fn forget(session: &Session, steps: &[Step]) -> Result<(), Error> {
    let windows = session.windows().await?;
    for window in windows.iter().skip(1) {
        session.enter_window(window).await?;
        session.close_window().await?;
    }
    if let Some(window) = windows.first() {
        session.enter_window(window).await?;
    }
    session.open("about:blank").await?;
    for (command, parameters) in [
        ("Network.clearBrowserCookies", json!({})),
        ("Network.clearBrowserCache", json!({})),
        ("Emulation.clearDeviceMetricsOverride", json!({})),
    ] {
        session.chromium(command, parameters).await?;
    }
    for url in opened(steps).filter_map(|url| Url::parse(url).ok()) {
        let origin = url.origin().ascii_serialization();
        session.chromium("Storage.clearDataForOrigin", json!({"origin": origin, "storageTypes": "all"})).await?;
    }
    Ok(())
}

fn note(trace: &mut [Value], name: &str, text: &str) {
    if let Some(step) = trace.last_mut() {
        step[name] = json!(text);
    }
}

/// A name for a file.
fn plain(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' }).take(60).collect();
    if name.is_empty() { "screenshot".to_owned() } else { name }
}
