//! Compares the output that a page shows with what a command printed. Leases, times, ids, keys and ports differ from run to
//! run: they need only be of the same kind, and later commands of the page are run with the values that were printed.

use std::sync::LazyLock;

use regex::Regex;

/// Values that differ from run to run, the longest kinds first; and whether later commands may repeat them.
static KINDS: LazyLock<Vec<(Regex, &str, bool)>> = LazyLock::new(|| {
    let kind = |pattern: &str, name, repeated| (Regex::new(pattern).expect("a pattern"), name, repeated);
    vec![
        kind(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>", true),
        kind(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d(:\d\d)?)?", "<time>", false),
        kind(r"\d{4}-\d\d-\d\d", "<day>", false),
        kind(r"\d\d:\d\d:\d\d(\.\d+)?", "<interval>", false),
        kind(r"\b[A-Za-z0-9_-]{43}\b", "<key>", true),
        kind(r"-?\b\d{13,}\b", "<lease>", true),
        kind(r"127\.0\.0\.1:\d+", "<address>", true),
        kind(r"\b\d+(\.\d+)?( |&nbsp;)?(µs|ms|s|min|h)\b", "<duration>", false),
        kind(r"\b\d+\.\d+\b", "<number>", false),
    ]
});

/// The values of a page and of this run that stand for each other.
#[derive(Default)]
pub(crate) struct Values(Vec<(String, String)>);

impl Values {
    /// The command of a page with this run's values.
    pub(crate) fn with_printed(&self, command: &str) -> String {
        self.0.iter().fold(command.to_owned(), |text, (shown, printed)| text.replace(shown, printed))
    }

    /// Whether the lines agree; if so, their values are remembered.
    pub(crate) fn agree(&mut self, shown: &[String], printed: &[String]) -> bool {
        let (shown, mut printed) = (lines(shown), lines(printed));
        // After `returning` a page leaves out how many rows it were.
        if !shown.iter().any(|line| is_tag(line)) {
            printed.retain(|line| !is_tag(line));
        }
        let agree = shown.len() == printed.len() && shown.iter().zip(&printed).all(|(s, p)| same(s, p));
        if agree {
            for (shown, printed) in shown.iter().zip(&printed) {
                self.remember(shown, printed);
            }
        }
        agree
    }

    fn remember(&mut self, shown: &str, printed: &str) {
        for (pattern, _, _) in KINDS.iter().filter(|(_, _, repeated)| *repeated) {
            let found = |text| pattern.find_iter(text).map(|m| m.as_str().to_owned()).collect::<Vec<_>>();
            for (shown, printed) in found(shown).into_iter().zip(found(printed)) {
                if !self.0.iter().any(|(known, _)| *known == shown) {
                    self.0.push((shown, printed));
                }
            }
        }
    }
}

/// Without what a page leaves out: empty lines, rules under titles, counts of rows, notes of the shell.
fn lines(text: &[String]) -> Vec<String> {
    let kept = |line: &&String| {
        let line = line.trim();
        let is_rule = !line.is_empty() && line.chars().all(|c| matches!(c, '-' | '+'));
        let is_count = line.starts_with('(') && (line.ends_with(" row)") || line.ends_with(" rows)"));
        !(line.is_empty() || is_rule || is_count || line.contains("Killed"))
    };
    text.iter().filter(kept).map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn is_tag(line: &str) -> bool {
    ["INSERT 0 ", "UPDATE ", "DELETE "].iter().any(|tag| line.strip_prefix(tag).is_some_and(|n| n.parse::<u64>().is_ok()))
}

fn same(shown: &str, printed: &str) -> bool {
    let masked = |text: &str| KINDS.iter().fold(text.to_owned(), |text, (p, name, _)| p.replace_all(&text, *name).into_owned());
    let (shown, printed) = (masked(shown), masked(printed));
    // An ellipsis stands for anything.
    let mut rest = printed.as_str();
    let parts: Vec<&str> = shown.split('…').collect();
    for (n, part) in parts.iter().enumerate() {
        let Some(at) = rest.find(part) else { return false };
        if n == 0 && at > 0 || n + 1 == parts.len() && n > 0 && !rest.ends_with(part) {
            return false;
        }
        rest = &rest[at + part.len()..];
    }
    parts.len() > 1 || rest.is_empty()
}

#[test]
fn values_that_differ_from_run_to_run_agree_and_are_used_by_later_commands() {
    let text = |lines: &[&str]| lines.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>();
    let mut values = Values::default();
    let shown = text(&[" id |      lease", "----+------------------", "  3 | 1794800575455841"]);
    let printed = text(&[" id |      lease       ", "----+-----", "  3 | 1800000000000001", "(1 row)", ""]);
    assert!(values.agree(&shown, &printed));
    assert_eq!(values.with_printed("complete(3, 1794800575455841)"), "complete(3, 1800000000000001)");
    assert!(values.agree(&text(&["done  1  2 ms"]), &text(&["done 1 14 ms"])));
    assert!(!values.agree(&text(&["done  1  2 ms"]), &text(&["failed 1 14 ms"])));
    assert!(!values.agree(&text(&["1 done."]), &text(&["1 done.", "warning: late"])));
    assert!(values.agree(&text(&["key … is good"]), &text(&["key abc is good"])));
    assert!(!values.agree(&text(&["key … is good"]), &text(&["key abc is bad"])));
}
