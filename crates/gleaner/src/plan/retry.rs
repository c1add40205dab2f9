//! How long claims last, and what happens to failures and lost leases.

use super::check::Check;
use super::shape::{ColumnRef, EngineColumns, Kind, PerRow, Retry, Status};
use crate::declaration::{Declaration, Lost, PerKind};
use crate::introspect::literal;

/// `hold` or `deadline`, as expressions over the queue's row `q`, a fetched row `v_row`, and a trigger's `new`.
pub(super) fn duration(
    check: &mut Check<'_>,
    d: &Declaration,
    kind: Option<&Kind>,
    key: &str,
    value: Option<&PerKind>,
    default: &str,
) -> PerRow {
    let by_kind = match value {
        None => return PerRow::alike(format!("interval '{default}'")),
        Some(PerKind::All(text)) => return PerRow::alike(check.duration(key, text)),
        Some(PerKind::ByKind(by_kind)) => by_kind,
    };
    let Some(kind) = kind else {
        check.mistake(format!("{key} has a duration per kind, and no kind is declared"), "declare `kind`, or write a single duration");
        return PerRow::default();
    };
    let otherwise = match by_kind.get("default") {
        Some(text) => check.duration(key, text),
        None => format!("interval '{default}'"),
    };
    let labels = d.kind.as_ref().and_then(|k| check.table.columns.get(k)).map(|c| c.labels.as_slice()).unwrap_or_default();
    let mut cases = String::new();
    for (k, text) in by_kind.iter().filter(|(k, _)| *k != "default") {
        if !labels.is_empty() && !labels.contains(k) {
            check.mistake(format!("{key}.{k}: there is no such kind"), format!("the kinds are {}", labels.join(", ")));
        }
        let duration = check.duration(&format!("{key}.{k}"), text);
        cases += &format!(" when {} then {duration}", literal(k));
    }
    if cases.is_empty() {
        return PerRow::alike(otherwise);
    }
    let of = |kind: &str| format!("(case {kind}{cases} else {otherwise} end)");
    PerRow { q: of(&kind.of), v_row: of(&kind.of_row), new: of(&kind.of_new) }
}

impl PerRow {
    fn alike(duration: String) -> Self {
        Self { q: duration.clone(), v_row: duration.clone(), new: duration }
    }
}

/// Attempts and back-off; whether a failure of `v_row` is retried, and one of `old`.
pub(super) fn retries(check: &mut Check<'_>, d: &Declaration, created: Option<&ColumnRef>, zone: &str) -> (Retry, String, String) {
    let retry = &d.retry;
    let first = check.duration("retry.backoff", &retry.backoff[0]);
    let cap = check.duration("retry.backoff", &retry.backoff[1]);
    let within = retry.within.as_ref().map(|w| check.duration("retry.within", w));
    if within.is_some() && created.is_none() {
        check.mistake("retry.within counts from the row's creation", "declare `created`");
    }
    let may_retry = |row: &str| {
        let mut sql = format!("v_attempts < {}", retry.attempts);
        if let (Some(within), Some(created)) = (&within, created) {
            let column = format!("{row}.{}", created.column);
            let at = if created.data_type == "timestamp without time zone" {
                format!("({column} at time zone {})", literal(zone))
            } else {
                column
            };
            sql += &format!(" and coalesce({at}, v_now) + {within} > v_now");
        }
        format!("({sql})")
    };
    (Retry { attempts: retry.attempts, first, cap }, may_retry("v_row"), may_retry("old"))
}

/// When a lost lease counts, and when one too many makes the row dead.
pub(super) struct Poison {
    pub(super) lost_now: String,
    pub(super) reason: String,
    /// Whether the row `q`, when it loses this lease too, has lost too many.
    pub(super) poisoned: String,
    pub(super) category: String,
}

pub(super) fn poison(d: &Declaration, status: &Status, col: &EngineColumns) -> Poison {
    let (retry, column, held, started) = (&d.retry, &status.column, &status.held, &col.started);
    let ask = retry.lost == Lost::Ask;
    let poisoned = format!("when v_lost >= {} then format('lost %s leases', v_lost)", retry.lost_leases);
    let unknown = "'outcome unknown: the lease ran out after the work had begun'";
    let lost_now = format!("(case when q.{column} in ({held}) and q.{started} >= 1 then 1 else 0 end)");
    let too_many = format!("q.{} + {lost_now} >= {}", col.lost, retry.lost_leases);
    Poison {
        poisoned: if ask { format!("(q.{column} in ({held}) and q.{started} = 2 or {too_many})") } else { too_many },
        lost_now,
        reason: if ask {
            format!("case when v_row.{column} in ({held}) and v_row.{started} = 2 then {unknown} {poisoned} end")
        } else {
            format!("case {poisoned} end")
        },
        category: if ask { format!("case when v_row.{started} = 2 then 'OutcomeUnknown' else 'Poison' end") } else { "'Poison'".into() },
    }
}
