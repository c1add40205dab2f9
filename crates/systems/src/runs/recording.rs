//! A recording as it is replayed: Chrome's Recorder JSON and our own steps become the same actions.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The time a step may take if neither it nor the recording says so, as in Chrome's Recorder.
const USUAL: Duration = Duration::from_millis(5000);

/// One step, with its values filled in.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// The step's own word: `click`, `waitForElement`.
    pub verb: String,
    pub action: Action,
    pub timeout: Duration,
    pub retries: u32,
    /// Child indices from the main frame.
    pub frame: Vec<u64>,
    /// Address of the pop-up it happens in; none is the page itself.
    pub target: Option<String>,
    /// Navigations that the step causes: address and title, where they are known.
    pub navigations: Vec<(Option<String>, Option<String>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    Open {
        url: String,
    },
    Click {
        at: Selectors,
        double: bool,
        button: u8,
        offset: Option<(f64, f64)>,
    },
    Hover {
        at: Selectors,
    },
    Fill {
        at: Selectors,
        value: String,
    },
    Key {
        key: String,
        down: bool,
    },
    Scroll {
        at: Option<Selectors>,
        x: f64,
        y: f64,
    },
    WaitFor {
        at: Selectors,
        condition: Value,
    },
    /// Until the text is there; in `at`, else anywhere on the page.
    Text {
        at: Option<Selectors>,
        text: String,
        exact: bool,
    },
    Expression(String),
    Pause(Duration),
    Viewport(Value),
    Network(Value),
    Screenshot(Option<String>),
    Close,
    /// Nothing to replay.
    Skip,
}

/// Alternatives, each a chain from an ancestor to the element.
pub(super) type Selectors = Vec<Vec<String>>;

/// The steps of a recording whose values are filled in.
pub(super) fn steps(content: &Value) -> Result<Vec<Step>, String> {
    let usual = content["timeout"].as_u64().map_or(USUAL, Duration::from_millis);
    let list = content["steps"].as_array().ok_or("the recording has no steps")?;
    list.iter().enumerate().map(|(n, step)| read(step, usual).map_err(|why| format!("step {}: {why}", n + 1))).collect()
}

fn read(step: &Value, usual: Duration) -> Result<Step, String> {
    let (verb, action) = match (step["do"].as_str(), step["type"].as_str()) {
        (Some(verb), _) => (verb, own(verb, step)?),
        (None, Some(verb)) => (verb, recorded(verb, step)?),
        (None, None) => return Err("it says neither \"do\" nor \"type\"".to_owned()),
    };
    let asserted = step["assertedEvents"].as_array().into_iter().flatten().filter(|event| event["type"] == "navigation");
    let text = |event: &Value, name: &str| event[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    Ok(Step {
        verb: verb.to_owned(),
        action,
        timeout: step["timeout"].as_u64().map_or(usual, Duration::from_millis),
        retries: step["retries"].as_u64().and_then(|retries| u32::try_from(retries).ok()).unwrap_or_default(),
        frame: step["frame"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect(),
        target: step["target"].as_str().filter(|target| *target != "main").map(str::to_owned),
        navigations: asserted.map(|event| (text(event, "url"), text(event, "title"))).collect(),
    })
}

fn own(verb: &str, step: &Value) -> Result<Action, String> {
    #[derive(Deserialize)]
    struct Own {
        url: Option<String>,
        selector: Option<Value>,
        #[serde(alias = "value")]
        text: Option<String>,
        ms: Option<u64>,
        #[serde(default)]
        exact: bool,
        name: Option<String>,
    }
    let step: Own = serde_json::from_value(step.clone()).map_err(|error| error.to_string())?;
    let at = step.selector.as_ref().map(selectors).transpose()?;
    let need = |at: Option<Selectors>| at.ok_or_else(|| "it needs \"selector\"".to_owned());
    Ok(match verb {
        "open" => Action::Open { url: step.url.ok_or("it needs \"url\"")? },
        "click" => Action::Click { at: need(at)?, double: false, button: 0, offset: None },
        "type" | "select" => Action::Fill { at: need(at)?, value: step.text.unwrap_or_default() },
        "wait" => match (step.text, at, step.ms) {
            (Some(text), at, _) => Action::Text { at, text, exact: false },
            (None, Some(at), _) => Action::WaitFor { at, condition: Value::Object(Map::new()) },
            (None, None, Some(ms)) => Action::Pause(Duration::from_millis(ms)),
            (None, None, None) => return Err("it needs \"selector\", \"text\" or \"ms\"".to_owned()),
        },
        "assert" => Action::Text { at, text: step.text.ok_or("it needs \"text\"")?, exact: step.exact },
        "screenshot" => Action::Screenshot(step.name),
        other => return Err(format!("there is no step {other:?}")),
    })
}

fn recorded(verb: &str, step: &Value) -> Result<Action, String> {
    let at = || selectors(&step["selectors"]);
    let text = |name: &str| step[name].as_str().map(str::to_owned).ok_or_else(|| format!("it needs {name:?}"));
    Ok(match verb {
        "setViewport" => Action::Viewport(step.clone()),
        "navigate" => Action::Open { url: text("url")? },
        "click" | "doubleClick" => {
            let button = match step["button"].as_str().unwrap_or("primary") {
                "auxiliary" => 1,
                "secondary" => 2,
                "back" => 3,
                "forward" => 4,
                _ => 0,
            };
            let offset = step["offsetX"].as_f64().zip(step["offsetY"].as_f64());
            Action::Click { at: at()?, double: verb == "doubleClick", button, offset }
        }
        "hover" => Action::Hover { at: at()? },
        "change" => Action::Fill { at: at()?, value: text("value")? },
        "keyDown" | "keyUp" => Action::Key { key: text("key")?, down: verb == "keyDown" },
        "scroll" => {
            let at = if step["selectors"].is_array() { Some(at()?) } else { None };
            Action::Scroll { at, x: step["x"].as_f64().unwrap_or_default(), y: step["y"].as_f64().unwrap_or_default() }
        }
        "waitForElement" => Action::WaitFor { at: at()?, condition: step.clone() },
        "waitForExpression" => Action::Expression(text("expression")?),
        "emulateNetworkConditions" => Action::Network(step.clone()),
        "close" => Action::Close,
        "customStep" => Action::Skip,
        other => return Err(format!("there is no step {other:?}")),
    })
}

/// One selector, alternatives, or alternatives of chains, as Chrome writes them.
fn selectors(value: &Value) -> Result<Selectors, String> {
    let wrong = || "a selector is a text, and selectors are a list of texts or of lists of texts".to_owned();
    let chain = |value: &Value| match value {
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Array(list) if !list.is_empty() => list.iter().map(|part| part.as_str().map(str::to_owned).ok_or_else(wrong)).collect(),
        _ => Err(wrong()),
    };
    match value {
        Value::String(_) => Ok(vec![chain(value)?]),
        Value::Array(list) if !list.is_empty() => list.iter().map(chain).collect(),
        _ => Err(wrong()),
    }
}

/// The addresses that a recording opens.
pub(super) fn opened(steps: &[Step]) -> impl Iterator<Item = &str> {
    steps.iter().filter_map(|step| if let Action::Open { url } = &step.action { Some(url.as_str()) } else { None })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn chromes_recorder_and_our_own_steps_become_the_same_actions() {
        let read = |steps: Value| super::steps(&json!({"steps": steps, "timeout": 900})).expect("a recording");
        let recorded = read(json!([
            {"type": "navigate", "url": "https://a.example/", "assertedEvents": [{"type": "navigation", "url": "https://a.example/", "title": "A"}]},
            {"type": "change", "value": "Ada", "selectors": [["aria/Name"], ["#host", "#name"]], "target": "main", "frame": [0, 1], "timeout": 70},
        ]));
        let own =
            read(json!([{"do": "open", "url": "https://a.example/"}, {"do": "type", "selector": "#name", "text": "Ada", "retries": 2}]));
        assert_eq!(recorded[0].action, own[0].action);
        assert_eq!(
            recorded[1].action,
            Action::Fill { at: vec![vec!["aria/Name".into()], vec!["#host".into(), "#name".into()]], value: "Ada".into() }
        );
        assert_eq!((recorded[1].frame.as_slice(), &recorded[1].target, recorded[1].timeout.as_millis()), (&[0, 1][..], &None, 70));
        assert_eq!(recorded[0].navigations, [(Some("https://a.example/".into()), Some("A".into()))]);
        assert_eq!((own[1].retries, own[1].timeout.as_millis()), (2, 900));
    }

    #[test]
    fn a_step_that_cannot_be_replayed_says_which_and_why() {
        let wrong = |step: Value| super::steps(&json!({"steps": [{"do": "screenshot"}, step]})).expect_err("wrong");
        assert!(wrong(json!({"do": "jump"})).contains("step 2: there is no step \"jump\""));
        assert!(wrong(json!({"do": "click"})).contains("selector"));
        assert!(wrong(json!({"type": "click", "selectors": [7]})).contains("a selector is a text"));
    }
}
