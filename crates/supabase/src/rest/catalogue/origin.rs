//! Finds the origin of a view's columns, from its stored rule.
//!
//! PostgreSQL stores a view as its parser's tree, written as text: `({QUERY … :targetList ({TARGETENTRY :expr {…} :resno 1
//! … :resorigtbl 16400 :resorigcol 3 …} …) …})`. A column taken from another relation has its origin recorded there, through joins,
//! subqueries and CTEs; only views below it have to be followed. A column that cannot be parsed has no origin, and gets no
//! relationships.

use std::collections::HashMap;

/// A column: its relation and its number there.
pub(super) type Place = (u32, i16);

/// The deepest nesting of views upon views.
const DEEPEST: usize = 32;

/// The columns of all views, each with the column it was taken from, which may be a view's again.
#[derive(Debug, Default)]
pub(super) struct Origins(HashMap<Place, Place>);

impl Origins {
    pub(super) fn read<'a>(rules: impl IntoIterator<Item = (u32, &'a str)>) -> Self {
        Self(rules.into_iter().flat_map(|(view, rule)| targets(rule).into_iter().map(move |(at, from)| ((view, at), from))).collect())
    }

    /// The column of a table that this column shows.
    pub(super) fn of(&self, place: Place) -> Place {
        let mut place = place;
        for _ in 0..DEEPEST {
            match self.0.get(&place) {
                Some(below) => place = *below,
                None => break,
            }
        }
        place
    }
}

/// The columns of the outermost query that are taken from another relation.
fn targets(rule: &str) -> Vec<(i16, Place)> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut field = "";
    // The query is at depth 2, `({`; its list of targets and each target are two levels further down.
    let mut in_targets = false;
    let (mut number, mut table, mut column) = (0, 0, 0);
    for token in tokens(rule) {
        match token {
            "(" | "{" => {
                depth += 1;
                if depth == 3 {
                    in_targets = field == ":targetList" && token == "(";
                }
                if depth == 4 {
                    (number, table, column) = (0, 0, 0);
                }
            }
            ")" | "}" => {
                if depth == 4 && in_targets && number > 0 && table > 0 && column > 0 {
                    found.push((number, (table, column)));
                }
                depth = depth.saturating_sub(1);
            }
            name if name.starts_with(':') && (depth == 2 || depth == 4) => field = name,
            value if depth == 4 && in_targets => match field {
                ":resno" => number = value.parse().unwrap_or(0),
                ":resorigtbl" => table = value.parse().unwrap_or(0),
                ":resorigcol" => column = value.parse().unwrap_or(0),
                // Not shown by the view.
                ":resjunk" if value == "true" => number = 0,
                _ => {}
            },
            _ => {}
        }
    }
    found
}

/// Splits into brackets and words. A bracket or a space that belongs to a word has a backslash before it.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let bytes = rest.as_bytes();
        let is_bracket = |byte: u8| matches!(byte, b'(' | b')' | b'{' | b'}');
        let length = match *bytes.first()? {
            byte if is_bracket(byte) => 1,
            _ => {
                let mut at = 0;
                while at < bytes.len() && !is_bracket(bytes[at]) && !bytes[at].is_ascii_whitespace() {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                // PostgreSQL escapes only single-byte characters. A tree cut off in the middle ends here.
                (at..=bytes.len()).find(|end| rest.is_char_boundary(*end)).unwrap_or(bytes.len())
            }
        };
        let (token, behind) = rest.split_at(length.min(rest.len()));
        rest = behind;
        Some(token)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_found_through_everything_but_an_expression() {
        let entry = |number: i16, table: u32, column: i16, junk: bool| {
            format!(
                "{{TARGETENTRY :expr {{VAR :varno 1 :resorigtbl 9}} :resno {number} :resname a\\ \\(b\\}} :ressortgroupref 0 \
                 :resorigtbl {table} :resorigcol {column} :resjunk {junk}}}"
            )
        };
        let inner = format!("{{QUERY :targetList ({})}}", entry(5, 77, 7, false));
        let rule = format!(
            "({{QUERY :commandType 1 :rtable ({{RTE :subquery {inner}}}) :targetList ({} {} {} {}) :having {inner} :returningList ({})}})",
            entry(1, 20, 3, false),
            entry(2, 0, 0, false),
            entry(3, 21, 1, false),
            entry(4, 22, 1, true),
            entry(6, 23, 1, false),
        );
        assert_eq!(targets(&rule), [(1, (20, 3)), (3, (21, 1))]);
        let origins = Origins::read([(10, rule.as_str()), (11, format!("({{QUERY :targetList ({})}})", entry(1, 10, 3, false)).as_str())]);
        assert_eq!((origins.of((11, 1)), origins.of((10, 2)), origins.of((20, 3))), ((21, 1), (10, 2), (20, 3)));
    }

    #[test]
    fn a_rule_that_is_cut_off_or_odd_is_no_panic() {
        let rule = "({QUERY :targetList ({TARGETENTRY :resno 1 :resname ä\\ ö :resorigtbl 20 :resorigcol 3 :resjunk false})})";
        for end in (0..=rule.len()).filter(|end| rule.is_char_boundary(*end)) {
            targets(&rule[..end]);
        }
        for odd in ["", "\\", "a\\", "(((((", "}}}}", ":targetList \\ä", "ä\\"] {
            assert_eq!(targets(odd), []);
        }
        // A view upon itself, which no database contains.
        let origins = Origins::read([(20, "({QUERY :targetList ({T :resno 3 :resorigtbl 20 :resorigcol 3})})")]);
        assert_eq!(origins.of((20, 3)), (20, 3));
    }
}
