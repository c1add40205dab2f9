//! What the steps do to a page.

use std::time::{Duration, Instant};

use reqwest::Url;
use serde_json::{Value, json};

use super::driver::{Element, Error, Session};
use super::keys;
use super::recording::{Action, Selectors, Step};

const FIND: &str = include_str!("find.js");
/// How often a page is looked at while a step waits.
const LOOK: Duration = Duration::from_millis(80);
/// Where on these it matters where one clicks; elsewhere the middle is as good, and holds when the layout changes.
const PICTURES: [&str; 4] = ["canvas", "svg", "img", "video"];

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// The browser is gone.
    Gone(String),
    /// The page did not do what the recording says.
    Step(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::Gone(why) => Self::Gone(why),
            Error::Refused { message, .. } => Self::Step(message),
        }
    }
}

/// Polls until it holds, or the time is over. A macro, because closures that borrow and wait cannot be sent between threads yet.
macro_rules! wait {
    ($until:expr, $look:expr, $why:expr) => {
        loop {
            match again($look, $until, $why) {
                Ok(true) => tokio::time::sleep(LOOK).await,
                Ok(false) => break Ok(()),
                Err(fault) => break Err(fault),
            }
        }
    };
}

pub(super) type Done<T = ()> = Result<T, Fault>;

/// Does the step. Returns the selector that found its element.
pub(super) async fn perform(session: &Session, step: &Step) -> Done<Option<String>> {
    let until = Instant::now() + step.timeout;
    enter(session, step, until).await?;
    let selector = act(session, step, until).await?;
    for (url, title) in &step.navigations {
        navigated(session, url.as_deref(), title.as_deref(), until).await?;
    }
    Ok(selector)
}

async fn act(session: &Session, step: &Step, until: Instant) -> Done<Option<String>> {
    match &step.action {
        Action::Open { url } => session.open(url).await.map_err(|error| opened(error, url))?,
        Action::Click { at, .. } | Action::Hover { at } | Action::Fill { at, .. } | Action::Scroll { at: Some(at), .. } => {
            return with(session, at, until, &step.action).await;
        }
        Action::Key { key, down } => {
            let action = json!({"type": if *down { "keyDown" } else { "keyUp" }, "value": keys::value(key)});
            session.actions(json!([{"type": "key", "id": "keyboard", "actions": [action]}])).await?;
        }
        Action::Scroll { at: None, x, y } => drop(session.script("window.scrollTo(arguments[0], arguments[1])", json!([x, y])).await?),
        Action::WaitFor { at, condition } => {
            let why = || format!("{} did not come to be as the recording says", named(at));
            wait!(until, session.script(FIND, json!([at, condition])).await.map(|holds| holds == true), why)?;
        }
        Action::Text { at, text, exact } => return expect(session, at.as_ref(), text, *exact, until).await,
        Action::Expression(expression) => {
            let script = format!("return Promise.resolve({expression}).then(Boolean)");
            let why = || "the expression did not become true".to_owned();
            wait!(until, session.script(&script, json!([])).await.map(|holds| holds == true), why)?;
        }
        Action::Pause(time) => tokio::time::sleep(*time).await,
        Action::Viewport(step) => viewport(session, step).await?,
        Action::Network(step) => network(session, step).await?,
        // The last window stays: without one there is no session.
        Action::Close => {
            if session.windows().await?.len() > 1 {
                session.close_window().await?;
            }
        }
        Action::Screenshot(_) | Action::Skip => {}
    }
    Ok(None)
}

/// Into the window and the frame of the step.
async fn enter(session: &Session, step: &Step, until: Instant) -> Done {
    let first = session.windows().await?.first().cloned().unwrap_or_default();
    match &step.target {
        None => session.enter_window(&first).await?,
        Some(target) => wait!(until, enter_window_of(session, target).await, || format!("there is no window {target}"))?,
    }
    session.enter_frame(None).await?;
    for frame in &step.frame {
        wait!(until, session.enter_frame(Some(*frame)).await.map(|()| true), || format!("there is no frame {frame}"))?;
    }
    Ok(())
}

async fn enter_window_of(session: &Session, url: &str) -> Result<bool, Error> {
    for window in session.windows().await? {
        session.enter_window(&window).await?;
        if same(&session.url().await?, url) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Finds the element and does this to it; again while the page is still changing under it.
async fn with(session: &Session, at: &Selectors, until: Instant, action: &Action) -> Done<Option<String>> {
    loop {
        let (element, selector) = find(session, at, until).await?;
        match touch(session, &element, action).await {
            Err(Error::Refused { code, .. })
                if matches!(code.as_str(), "stale element reference" | "element click intercepted" | "element not interactable")
                    && Instant::now() + LOOK < until =>
            {
                tokio::time::sleep(LOOK).await;
            }
            done => return done.map(|()| Some(selector)).map_err(Fault::from),
        }
    }
}

async fn touch(session: &Session, element: &Element, action: &Action) -> Result<(), Error> {
    match action {
        Action::Click { double, button, offset, .. } => match (place(session, element, *offset).await?, double, button) {
            ((0, 0), false, 0) => session.click(element).await,
            (place, double, button) => point(session, element, place, if *double { 2 } else { 1 }, *button).await,
        },
        Action::Hover { .. } => {
            let place = place(session, element, None).await?;
            point(session, element, place, 0, 0).await
        }
        Action::Fill { value, .. } => fill(session, element, value).await,
        Action::Scroll { x, y, .. } => {
            let script = "arguments[0].scrollTo(arguments[1], arguments[2])";
            session.script(script, json!([element.as_argument(), x, y])).await.map(drop)
        }
        _ => Ok(()),
    }
}

async fn find(session: &Session, at: &Selectors, until: Instant) -> Done<(Element, String)> {
    let mut found = None;
    let missing = || format!("there is no {} that can be seen", named(at));
    wait!(until, look(session, at, &mut found).await, missing)?;
    found.ok_or_else(|| Fault::Step(missing()))
}

async fn look(session: &Session, at: &Selectors, found: &mut Option<(Element, String)>) -> Result<bool, Error> {
    let answer = session.script(FIND, json!([at, null])).await?;
    *found = Element::read(&answer[0]).map(|element| (element, answer[1].as_str().unwrap_or_default().to_owned()));
    Ok(found.is_some())
}

/// Whether to look again. A page that is being replaced may refuse; that counts as not yet.
fn again(looked: Result<bool, Error>, until: Instant, why: impl FnOnce() -> String) -> Done<bool> {
    let refused = match looked {
        Ok(true) => return Ok(false),
        Ok(false) => None,
        Err(Error::Gone(why)) => return Err(Fault::Gone(why)),
        Err(Error::Refused { code, message }) if code == "invalid selector" => return Err(Fault::Step(message)),
        Err(Error::Refused { message, .. }) => Some(message),
    };
    if Instant::now() + LOOK <= until {
        return Ok(true);
    }
    Err(Fault::Step(match refused {
        Some(message) => format!("{}: {message}", why()),
        None => why(),
    }))
}

/// Scrolls the element into view. Returns where to point, from its middle.
async fn place(session: &Session, element: &Element, offset: Option<(f64, f64)>) -> Result<(i64, i64), Error> {
    let script = "const e = arguments[0]; e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
                  const box = e.getBoundingClientRect(); return [box.width, box.height, e.tagName.toLowerCase()]";
    let answer = session.script(script, json!([element.as_argument()])).await?;
    let (Some((x, y)), Some(width), Some(height)) = (offset, answer[0].as_f64(), answer[1].as_f64()) else { return Ok((0, 0)) };
    let within = PICTURES.contains(&answer[2].as_str().unwrap_or_default()) && (0.0..=width).contains(&x) && (0.0..=height).contains(&y);
    Ok(if within { ((x - width / 2.0) as i64, (y - height / 2.0) as i64) } else { (0, 0) })
}

/// Moves the pointer there, and presses it `times`.
async fn point(session: &Session, element: &Element, (x, y): (i64, i64), times: usize, button: u8) -> Result<(), Error> {
    let mut actions = vec![json!({"type": "pointerMove", "duration": 0, "origin": element.as_argument(), "x": x, "y": y})];
    for _ in 0..times {
        actions.push(json!({"type": "pointerDown", "button": button}));
        actions.push(json!({"type": "pointerUp", "button": button}));
    }
    session.actions(json!([{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}])).await
}

/// Chooses, types, or sets the value, whichever the element takes.
async fn fill(session: &Session, element: &Element, value: &str) -> Result<(), Error> {
    let script = "const [e, value] = arguments, typed = ['text','url','tel','search','password','number','email'];
        if (e instanceof HTMLTextAreaElement || e.isContentEditable || e instanceof HTMLInputElement && typed.includes(e.type)) return 'type';
        if (e instanceof HTMLSelectElement) {
            const option = [...e.options].find((o) => o.value === value) ?? [...e.options].find((o) => o.text.trim() === value);
            if (!option) return 'missing';
            e.value = option.value;
        } else e.value = value;
        e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true}));
        return 'set'";
    let answer = session.script(script, json!([element.as_argument(), value])).await?;
    match answer.as_str() {
        Some("type") => {
            session.clear(element).await?;
            session.type_into(element, value).await
        }
        Some("missing") => Err(Error::Refused { code: "no such option".to_owned(), message: format!("there is no option {value:?}") }),
        _ => Ok(()),
    }
}

/// Until the text is there.
async fn expect(session: &Session, at: Option<&Selectors>, text: &str, exact: bool, until: Instant) -> Done<Option<String>> {
    let (mut said, mut found) = (None, None);
    let waited: Done = wait!(until, says(session, at, (text, exact), &mut found, &mut said).await, String::new);
    let place = at.map_or_else(|| "the page".to_owned(), named);
    match (waited, said) {
        (Ok(()), _) => Ok(found.map(|(_, selector)| selector)),
        (Err(Fault::Gone(why)), _) => Err(Fault::Gone(why)),
        (Err(_), None) => Err(Fault::Step(format!("there is no {place} that can be seen"))),
        (Err(_), Some(said)) => Err(Fault::Step(format!("{place} says {:?}, not {text:?}", short(&said)))),
    }
}

async fn says(
    session: &Session,
    at: Option<&Selectors>,
    (text, exact): (&str, bool),
    found: &mut Option<(Element, String)>,
    said: &mut Option<String>,
) -> Result<bool, Error> {
    if let Some(at) = at
        && !look(session, at, found).await?
    {
        return Ok(false);
    }
    let read = "const e = arguments[0] ?? document.body; return (typeof e.value === 'string' ? e.value : e.innerText).trim()";
    let element = found.as_ref().map(|(element, _)| element.as_argument());
    let now = session.script(read, json!([element])).await?.as_str().unwrap_or_default().to_owned();
    let holds = if exact { now == text.trim() } else { now.contains(text) };
    *said = Some(now);
    Ok(holds)
}

async fn navigated(session: &Session, url: Option<&str>, title: Option<&str>, until: Instant) -> Done {
    let mut at = (String::new(), String::new());
    let waited: Done = wait!(until, arrived(session, url, title, &mut at).await, String::new);
    waited.map_err(|fault| match fault {
        Fault::Step(_) => {
            Fault::Step(format!("the page is {} ({:?}), not {} ({:?})", at.0, short(&at.1), url.unwrap_or("any"), title.unwrap_or("any")))
        }
        gone => gone,
    })
}

async fn arrived(session: &Session, url: Option<&str>, title: Option<&str>, at: &mut (String, String)) -> Result<bool, Error> {
    *at = (session.url().await?, session.title().await?);
    let loaded = session.script("return document.readyState === 'complete'", json!([])).await? == true;
    Ok(loaded && url.is_none_or(|url| same(url, &at.0)) && title.is_none_or(|title| title == at.1))
}

fn same(a: &str, b: &str) -> bool {
    a == b || Url::parse(a).ok().is_some_and(|a| Url::parse(b).is_ok_and(|b| a == b))
}

async fn viewport(session: &Session, step: &Value) -> Done {
    let metrics = json!({"width": step["width"], "height": step["height"], "deviceScaleFactor": step["deviceScaleFactor"].as_f64().unwrap_or(1.0),
        "mobile": step["isMobile"] == true});
    session.chromium("Emulation.setDeviceMetricsOverride", metrics).await?;
    session.chromium("Emulation.setTouchEmulationEnabled", json!({"enabled": step["hasTouch"] == true})).await?;
    Ok(())
}

async fn network(session: &Session, step: &Value) -> Done {
    let (download, upload) = (step["download"].as_f64().unwrap_or(-1.0), step["upload"].as_f64().unwrap_or(-1.0));
    let conditions = json!({"offline": download == 0.0 && upload == 0.0, "latency": step["latency"].as_f64().unwrap_or_default(),
        "downloadThroughput": download, "uploadThroughput": upload});
    session.chromium("Network.enable", json!({})).await?;
    session.chromium("Network.emulateNetworkConditions", conditions).await?;
    Ok(())
}

fn opened(error: Error, url: &str) -> Fault {
    match error {
        Error::Gone(why) => Fault::Gone(why),
        Error::Refused { message, .. } => Fault::Step(format!("{url} cannot be opened: {}", message.trim_start_matches("unknown error: "))),
    }
}

/// The alternatives as people wrote them.
fn named(at: &Selectors) -> String {
    at.iter().map(|chain| chain.join(" ")).collect::<Vec<_>>().join(" or ")
}

fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() > 200 { line.chars().take(200).chain(['…']).collect() } else { line }
}
