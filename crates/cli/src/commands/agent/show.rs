//! Formats an agent as lines of text; the same for `status` and `watch`.

use serde_json::Value;

use crate::output::{BAD, BOLD, BUSY, DIM, GOOD, PLAIN, WARN, paint};
use crate::table::{Cell, Table};
use crate::words::{member, span};

/// The most errors that are shown.
const ERRORS: usize = 5;

/// One word, or `processing 3`.
pub(super) fn state(view: &Value) -> String {
    let running = view["running"].as_array().map_or(0, Vec::len);
    match view["state"].as_str().unwrap_or_default() {
        "processing" => format!("processing {running}"),
        state if running > 0 && state != "idle" => format!("{state}, {running} still in work"),
        state => state.to_owned(),
    }
}

pub(super) fn painted_state(view: &Value) -> String {
    let style = match view["state"].as_str().unwrap_or_default() {
        "idle" => GOOD,
        "processing" => BUSY,
        "offline" => BAD,
        "paused" | "stopping" => WARN,
        _ => PLAIN,
    };
    paint(style, state(view))
}

/// Everything about one agent.
pub(super) fn lines(view: &Value, url: &str) -> String {
    let mut out = vec![format!("{}  {}", paint(BOLD, member(view, "name")), painted_state(view))];
    for reason in view["health"]["reasons"].as_array().into_iter().flatten() {
        out.push(format!("  {}", paint(BAD, crate::words::brief(reason))));
    }
    let owner = view["owner"].as_str().map(|owner| format!("owner {owner} first")).unwrap_or_else(|| "no owner".into());
    let push = if view["push"] == true { "push and polls" } else { "polls" };
    let endpoint = view["endpoint"].as_str().unwrap_or("not known yet");
    let uptime = span(view["uptime_seconds"].as_f64().unwrap_or_default());
    let at_once = member(view, "concurrency");
    for (name, value) in
        [("page", url), ("endpoint", endpoint), ("for", &owner), ("wakes by", push), ("at once", &at_once), ("since", &uptime)]
    {
        out.push(format!("  {name:8}  {value}"));
    }
    out.push(queues(view));
    if let Some(running) = running(view) {
        out.push(running);
    }
    if let Some(errors) = errors(view) {
        out.push(errors);
    }
    out.join("\n")
}

fn rows<'a>(view: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    view[name].as_array().into_iter().flatten()
}

fn queues(view: &Value) -> String {
    let mut table = Table::new(&["queue", ">pending", ">completed", ">failed", ">last poll"]);
    for queue in rows(view, "queues") {
        let pending = match queue["pending"].as_u64() {
            Some(n) if queue["pending_capped"] == true => format!("{n}+"),
            Some(n) => n.to_string(),
            None => "?".into(),
        };
        let last_poll = queue["last_poll_seconds_ago"].as_f64().map_or_else(|| "–".into(), |ago| format!("{} ago", span(ago)));
        table.row(vec![
            member(queue, "queue").into(),
            pending.into(),
            member(queue, "completed").into(),
            member(queue, "failed").into(),
            Cell::styled(last_poll, DIM),
        ]);
    }
    format!("\n{}", table.text())
}

fn running(view: &Value) -> Option<String> {
    rows(view, "running").next()?;
    let mut table = Table::new(&["in work", "id", "kind", "stage", ">%", ">for"]);
    for item in rows(view, "running") {
        let percent = item["percent"].as_f64().map(|percent| format!("{percent:.0}")).unwrap_or_default();
        table.row(vec![
            member(item, "queue").into(),
            member(item, "key").into(),
            member(item, "kind").into(),
            member(item, "stage").into(),
            percent.into(),
            Cell::styled(span(item["seconds"].as_f64().unwrap_or_default()), DIM),
        ]);
    }
    Some(format!("\n{}", table.text()))
}

fn errors(view: &Value) -> Option<String> {
    rows(view, "errors").next()?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let mut table = Table::new(&["last errors", "queue", "id", "message", ">when"]);
    for error in rows(view, "errors").take(ERRORS) {
        let ago = (now - error["at"].as_f64().unwrap_or(now)).max(0.0);
        table.row(vec![
            Cell::styled(member(error, "category"), BAD),
            member(error, "queue").into(),
            member(error, "key").into(),
            member(error, "message").into(),
            Cell::styled(format!("{} ago", span(ago)), DIM),
        ]);
    }
    Some(format!("\n{}", table.text()))
}
