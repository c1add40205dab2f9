//! The functions in a rendered template: their names, arguments, allowed callers, and the contract in the comment above each.

/// Who may call a rendered function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Work,
    /// Those whom the declaration names.
    Operate,
    /// Those, and the people whom the act itself admits.
    Govern,
    /// The same, and those who work.
    Look,
    /// Only other functions of the queue.
    Engine,
}

/// A function the queue has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    /// Without its schema.
    pub(crate) name: String,
    /// The types of its arguments.
    pub(crate) arguments: String,
    pub(crate) audience: Audience,
    /// Its documentation, for `comment on function`.
    pub(crate) contract: Option<String>,
    pub(crate) text: String,
}

impl Function {
    pub(crate) fn signature(&self) -> String {
        format!("gleaner.{}({})", self.name, self.arguments)
    }
}

const CREATE: &str = "create or replace function gleaner.";

/// Acts for workers, and acts for operators. All other functions are internal to these.
const WORK: &[&str] = &["claim", "next_due", "start", "progress", "complete", "fail", "release", "snooze"];
const OPERATE: &[&str] = &["enqueue", "recover", "due_tenants", "reserve_keys", "register_range"];
/// Acts that ask by themselves who the caller is, and which rows it may operate.
const GOVERN: &[&str] = &["cancel", "requeue", "bury", "assign", "reschedule", "prune"];
/// Acts that change nothing, for those who may see the rows.
const LOOK: &[&str] = &["explain", "stats"];

/// The functions of `queue` in a rendered template, whose bodies are in the dollar quotes `body`.
pub(super) fn split(text: &str, body: &str, queue: &str) -> Vec<Function> {
    let end = format!("\n{body};");
    text.split_inclusive(&end).filter_map(|part| function(part.trim(), queue)).collect()
}

fn function(part: &str, queue: &str) -> Option<Function> {
    let (comment, _) = part.split_once(CREATE)?;
    let text = &part[comment.len()..];
    let rest = &text[CREATE.len()..];
    let (name, rest) = rest.split_once('(')?;
    let arguments: Vec<&str> = pieces(rest).into_iter().filter_map(data_type).collect();
    Some(Function {
        name: name.to_owned(),
        arguments: arguments.join(", "),
        audience: audience(name, queue),
        contract: contract(comment),
        text: text.to_owned(),
    })
}

/// The name of an act starts with its verb: `claim_orders`, `complete_orders_many`.
fn audience(name: &str, queue: &str) -> Audience {
    let is = |verbs: &[&str]| {
        verbs.iter().any(|verb| {
            let rest = name.strip_prefix(verb).and_then(|rest| rest.strip_prefix('_')).and_then(|rest| rest.strip_prefix(queue));
            rest.is_some_and(|rest| matches!(rest, "" | "_many" | "_matching"))
        })
    };
    if is(WORK) {
        Audience::Work
    } else if is(OPERATE) {
        Audience::Operate
    } else if is(GOVERN) {
        Audience::Govern
    } else if is(LOOK) {
        Audience::Look
    } else {
        Audience::Engine
    }
}

/// The comment above a function, without the comment markers.
fn contract(comment: &str) -> Option<String> {
    let lines: Vec<&str> = comment
        .lines()
        .map(|line| line.trim_start_matches("/*").trim_end_matches("*/").trim_start_matches("--"))
        .map(|line| {
            line.strip_prefix(" * ").or_else(|| line.strip_prefix(" *")).or_else(|| line.strip_prefix(' ')).unwrap_or(line).trim_end()
        })
        .collect();
    let text = lines.join("\n");
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The arguments up to the closing parenthesis, split at the commas between them.
fn pieces(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut from, mut out) = (0, None, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')') if depth == 0 => {
                out.push(&text[from..at]);
                break;
            }
            (None, ')' | ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                out.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    out.into_iter().map(str::trim).filter(|piece| !piece.is_empty()).collect()
}

/// The type of an argument; `None` for a returned column.
fn data_type(argument: &str) -> Option<&str> {
    if argument.starts_with("out ") {
        return None;
    }
    let argument = argument.strip_prefix("inout ").unwrap_or(argument);
    let (_, rest) = argument.split_once(char::is_whitespace)?;
    // A default may contain anything; a name that contains the word is quoted and comes before it.
    Some(rest.rfind(" default ").map_or(rest, |at| &rest[..at]).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_cut_out_with_its_contract_and_its_argument_types() {
        let text = "/*\n * Takes rows.\n *\n * Returns  them.\n */\ncreate or replace function gleaner.claim_a(\n    p_agent text, p_kinds text[] default '{a,b}', p_row public.\"a,b)\", out seen integer\n) returns void\nas $gleaner$\nbegin\nend\n$gleaner$;\n\n-- Counts.\ncreate or replace function gleaner.find_a() returns void\nas $gleaner$\nend\n$gleaner$;";
        let found = split(text, "$gleaner$", "a");
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].signature(), "gleaner.claim_a(text, text[], public.\"a,b)\")");
        assert_eq!(found[0].contract.as_deref(), Some("Takes rows.\n\nReturns  them."));
        assert_eq!(found[0].audience, Audience::Work);
        assert_eq!((found[1].signature().as_str(), found[1].contract.as_deref()), ("gleaner.find_a()", Some("Counts.")));
        assert_eq!(found[1].audience, Audience::Engine);
        assert!(found[1].text.starts_with("create or replace") && found[1].text.ends_with("$gleaner$;"));
    }

    #[test]
    fn acts_are_for_those_who_work_or_operate_and_the_rest_is_the_engines() {
        assert_eq!(audience("complete_a_many", "a"), Audience::Work);
        assert_eq!(audience("cancel_a_matching", "a"), Audience::Govern);
        assert_eq!(audience("enqueue_unique_a", "a"), Audience::Engine);
        // The act of a queue whose name extends another's is not an act of that other queue.
        assert_eq!(audience("claim_a_b", "a"), Audience::Engine);
    }
}
