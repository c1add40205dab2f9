//! How long claims last, and what happens to failures and lost leases.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::check::Check;
use super::columns::Engine;
use crate::declaration::{Declaration, Lost, PerKind};
use crate::introspect::literal;

/// `hold` and `deadline`, as expressions over the queue's row `q`, a fetched row `v_row`, and a trigger's `new`.
pub(super) fn durations(check: &mut Check<'_>, d: &Declaration, kind: Option<&Value>, context: &mut BTreeMap<&'static str, Value>) {
    let forms = [("hold", "deadline", "of"), ("hold_of_row", "deadline_of_row", "of_row"), ("hold_new", "deadline_new", "of_new")];
    for (i, (hold, deadline, row)) in forms.into_iter().enumerate() {
        let before = check.mistakes.len();
        let held = per_kind(check, d, kind, "hold", d.hold.as_ref(), "5 minutes", row);
        let bounded = per_kind(check, d, kind, "deadline", d.deadline.as_ref(), "1 hour", row);
        if i > 0 {
            // The same text three times over; its mistakes are told once.
            check.mistakes.truncate(before);
        }
        context.insert(hold, held.into());
        context.insert(deadline, bounded.into());
    }
}

fn per_kind(
    check: &mut Check<'_>,
    d: &Declaration,
    kind: Option<&Value>,
    key: &str,
    value: Option<&PerKind>,
    default: &str,
    row: &str,
) -> String {
    let table = check.table;
    match value {
        None => format!("interval '{default}'"),
        Some(PerKind::All(text)) => check.duration(key, text),
        Some(PerKind::ByKind(by_kind)) => {
            let Some(kind) = kind else {
                check.mistake(
                    format!("{key} has a duration per kind, and no kind is declared"),
                    "declare `kind`, or write a single duration",
                );
                return String::new();
            };
            let otherwise = match by_kind.get("default") {
                Some(text) => check.duration(key, text),
                None => format!("interval '{default}'"),
            };
            let mut sql = format!("(case {}", kind[row].as_str().unwrap_or_default());
            let labels = d.kind.as_ref().and_then(|k| table.columns.get(k)).map(|c| c.labels.as_slice()).unwrap_or_default();
            for (k, text) in by_kind.iter().filter(|(k, _)| *k != "default") {
                if !labels.is_empty() && !labels.contains(k) {
                    check.mistake(format!("{key}.{k}: there is no such kind"), format!("the kinds are {}", labels.join(", ")));
                }
                let duration = check.duration(&format!("{key}.{k}"), text);
                sql += &format!(" when {} then {duration}", literal(k));
            }
            if by_kind.len() == usize::from(by_kind.contains_key("default")) { otherwise } else { sql + &format!(" else {otherwise} end)") }
        }
    }
}

/// Attempts, back-off, and until when a failure is tried again.
pub(super) fn retries(
    check: &mut Check<'_>,
    d: &Declaration,
    created: Option<&Value>,
    zone: &str,
    context: &mut BTreeMap<&'static str, Value>,
) {
    let retry = &d.retry;
    let first = check.duration("retry.backoff", &retry.backoff[0]);
    let cap = check.duration("retry.backoff", &retry.backoff[1]);
    context.insert("retry", json!({"attempts": retry.attempts, "first": first, "cap": cap}));
    let within = retry.within.as_ref().map(|w| check.duration("retry.within", w));
    if within.is_some() && created.is_none() {
        check.mistake("retry.within counts from the row's creation", "declare `created`");
    }
    let may_retry = |row: &str| {
        let mut sql = format!("v_attempts < {}", retry.attempts);
        if let (Some(within), Some(created)) = (&within, created) {
            let column = format!("{row}.{}", created["column"].as_str().unwrap_or_default());
            let at = if created["type"] == "timestamp without time zone" {
                format!("({column} at time zone {})", literal(zone))
            } else {
                column
            };
            sql += &format!(" and coalesce({at}, v_now) + {within} > v_now");
        }
        format!("({sql})")
    };
    context.insert("may_retry", may_retry("v_row").into());
    context.insert("may_retry_old", may_retry("old").into());
}

/// When a lost lease counts, and when one too many ends the row.
pub(super) fn poison(d: &Declaration, status: &Value, engine: &Engine, context: &mut BTreeMap<&'static str, Value>) {
    let retry = &d.retry;
    let s = |k: &str| status[k].as_str().unwrap_or_default();
    let started = engine.column("started");
    context.insert("lost_now", format!("(case when q.{} in ({}) and q.{} >= 1 then 1 else 0 end)", s("column"), s("held"), started).into());
    let ask = retry.lost == Lost::Ask;
    let poisoned = format!("when v_lost >= {} then format('lost %s leases', v_lost)", retry.lost_leases);
    context.insert("poison_reason", if ask {
        format!("case when v_row.{0} in ({1}) and v_row.{2} = 2 then 'outcome unknown: the lease ran out after the work had begun' {poisoned} end", s("column"), s("held"), started)
    } else {
        format!("case {poisoned} end")
    }.into());
    context.insert(
        "poison_category",
        if ask { "case when v_row.{st} = 2 then 'OutcomeUnknown' else 'Poison' end".replace("{st}", &started) } else { "'Poison'".into() }
            .into(),
    );
}
