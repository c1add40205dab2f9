//! Renders a plan to SQL: one template per act, plain functions as the result.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value, escape_formatter};
use serde::Serialize;

use crate::declaration::Grant;
use crate::error::{Error, Result};
use crate::files;
use crate::introspect::literal;
use crate::plan::Plan;
use crate::plan::shape::{Engine, in_format, in_text};

mod signature;

pub(crate) use signature::{Audience, Function};

/// Templates in the order they are rendered: shared functions, then the acts, then triggers and their functions.
const ROWS: &[&str] = &[
    "own",
    "open",
    "settle",
    "lock",
    "lose",
    "find",
    "first",
    "take_each",
    "request",
    "claim",
    "next_due",
    "start",
    "progress",
    "complete",
    "complete_one",
    "fail",
    "put_back",
    "release",
    "snooze",
    "admit",
    "operate",
    "assign",
    "recover",
    "explain",
    "prune",
    "stats",
    "enqueue",
    "due_tenants",
    "adapt",
];

/// The role of signed-in users, administrators among them.
const ADMINISTRATORS: &str = "authenticated";

/// Additional templates of a queue with batch leases.
const BULK: &[&str] = &["unbatch", "unpack_range", "register_range", "find_range", "hold"];

/// Which roles may call the functions of which audiences; audiences with the same roles share a statement.
fn grants(grant: &Grant) -> BTreeMap<BTreeSet<String>, Vec<Audience>> {
    // Administrators are signed-in users. The acts of the last two admit them and reject other users.
    let administrators = [ADMINISTRATORS.to_owned()];
    let mut grants = BTreeMap::<_, Vec<_>>::new();
    for (audience, lists) in [
        (Audience::Work, vec![&grant.work[..]]),
        (Audience::Operate, vec![&grant.operate[..]]),
        (Audience::Govern, vec![&grant.operate[..], &grant.own[..], &administrators[..]]),
        (Audience::Look, vec![&grant.work[..], &grant.operate[..], &grant.own[..], &administrators[..]]),
    ] {
        grants.entry(lists.concat().into_iter().collect()).or_default().push(audience);
    }
    grants.retain(|roles: &BTreeSet<String>, _| !roles.is_empty());
    grants
}

/// The functions and triggers of a queue, as one script to be run in one transaction.
pub fn render(plan: &Plan) -> Result<String> {
    let env = templates(plan)?;
    // A line break in the table's name would end the comment.
    let table = plan.table.sql().replace(['\n', '\r'], " ");
    let mut script = format!("-- Queue {} on {table}. Rendered by `gleaner attach`; printed by `gleaner sql {}`.\n", plan.name, plan.name);
    let functions = rendered(plan, &env)?;
    let owner = crate::introspect::quote(plan.acts_owner());
    // A distributed table's owner need not have the right to create functions; then each is handed over.
    if !plan.shape.distributed {
        script += &format!(
            "\n-- Functions are executable by everyone from the moment they exist; not these.\nset role {owner};\nalter default privileges revoke execute on functions from public;\n"
        );
    }
    for function in &functions {
        script += &format!("\n{}\n", function.text);
        // Functions that only other functions call are documented in their template, for developers.
        if let Some(contract) = function.contract.as_ref().filter(|_| function.audience != Audience::Engine) {
            let (of, text) = (format!("comment on function {} is", function.signature()), literal(contract));
            let between = if of.len() + text.len() < 180 && !text.contains('\n') { ' ' } else { '\n' };
            script += &format!("{of}{between}{text};\n");
        }
    }
    let list = |of: &dyn Fn(&Function) -> bool| wrapped(functions.iter().filter(|f| of(f)).map(Function::signature));
    if plan.shape.distributed {
        for function in &functions {
            script += &format!("alter function {} owner to {owner};\n", function.signature());
        }
        script += &format!("revoke all on function\n{}\nfrom public, anon, authenticated, service_role;\n", list(&|_| true));
    }
    script.push('\n');
    for (roles, audiences) in grants(&plan.declaration.grant) {
        let roles: Vec<String> = roles.iter().map(|r| crate::introspect::quote(r)).collect();
        script += &format!("grant execute on function\n{}\nto {};\n", list(&|f| audiences.contains(&f.audience)), roles.join(", "));
    }
    if plan.shape.distributed {
        // Citus allows no triggers on such a table.
        return Ok(script);
    }
    script += "reset role;\n";
    let triggers =
        env.get_template("triggers.sql").and_then(|t| t.render(())).map_err(|e| Error::Other(format!("render triggers: {e:#}")))?;
    script += &format!("\n{}\n", triggers.trim());
    Ok(script)
}

/// A list with as many items on a line as fit.
fn wrapped(items: impl Iterator<Item = String>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if line.len() + item.len() < 140 => *line += &format!(", {item}"),
            Some(line) => {
                line.push(',');
                lines.push(format!("    {item}"));
            }
            None => lines.push(format!("    {item}")),
        }
    }
    lines.join("\n")
}

/// The statement that gives existing rows their times, of those that meet `condition`: waiting rows `now`, held ones until `held_until`.
pub(crate) fn fill(plan: &Plan, now: &str, held_until: &str, condition: &str) -> Result<String> {
    let template = templates(plan)?;
    let template = template.get_template("fill.sql").map_err(|e| Error::Other(format!("template fill: {e:#}")))?;
    let context = minijinja::context! { now, held_until, condition };
    template.render(context).map_err(|e| Error::Other(format!("render fill: {e:#}")))
}

/// Every function the queue has.
pub(crate) fn functions(plan: &Plan) -> Result<Vec<Function>> {
    rendered(plan, &templates(plan)?)
}

fn rendered(plan: &Plan, env: &Environment<'_>) -> Result<Vec<Function>> {
    let bulk = if plan.shape.engine == Engine::Bulk { BULK } else { &[] };
    let mut functions = Vec::new();
    for act in ROWS.iter().chain(bulk) {
        let template = env.get_template(&format!("{act}.sql")).map_err(|e| Error::Other(format!("template {act}: {e:#}")))?;
        let text = template.render(()).map_err(|e| Error::Other(format!("render {act}: {e:#}")))?;
        functions.extend(signature::split(&text, &plan.shape.body, &plan.name));
    }
    Ok(functions)
}

/// The templates of the queue's engine. A template in a later folder replaces one of the same name.
fn templates(plan: &Plan) -> Result<Environment<'static>> {
    let mut env = environment(&plan.shape)?;
    let folders: &[&str] = match plan.shape.engine {
        Engine::Bulk => &["engine/acts", "engine/rows", "engine/bulk"],
        Engine::Rows if plan.shape.distributed => &["engine/acts", "engine/rows", "engine/distributed"],
        Engine::Rows => &["engine/acts", "engine/rows"],
    };
    for (name, source) in folders.iter().flat_map(|folder| files::within(folder, "sql")) {
        let name = name.rsplit('/').next().unwrap_or(name);
        env.add_template(name, source).map_err(|e| Error::Other(format!("template {name}: {e:#}")))?;
    }
    Ok(env)
}

/// An environment in which the shape's fields are names that every template and macro may use, and no other names exist.
fn environment(shape: &impl Serialize) -> Result<Environment<'static>> {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    // Templates test omitted settings with `if`. Printed into the text, one would look like a name.
    env.set_formatter(|out, state, value| {
        if value.is_none() {
            return Err(minijinja::Error::new(ErrorKind::UndefinedError, "the declaration leaves this out"));
        }
        escape_formatter(out, state, value)
    });
    env.add_filter("indent", indent);
    env.add_filter("in_text", |sql: &str| in_text(sql));
    env.add_filter("in_format", |sql: &str| in_format(sql));
    let fields = Value::from_serialize(shape);
    let names = fields.try_iter().map_err(|e| Error::Other(format!("read the plan: {e:#}")))?;
    for name in names {
        let value = fields.get_item(&name).map_err(|e| Error::Other(format!("read {name} of the plan: {e:#}")))?;
        env.add_global(name.to_string(), value);
    }
    Ok(env)
}

/// Indents every line but the first. Unlike minijinja's filter, it does not change names and strings that contain a line break.
fn indent(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut quote, mut rest) = (None, text.chars().peekable());
    while let Some(c) = rest.next() {
        out.push(c);
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            // An apostrophe in a comment does not open a string.
            (None, '-') if rest.peek() == Some(&'-') => {
                while let Some(c) = rest.next_if(|c| *c != '\n') {
                    out.push(c);
                }
            }
            (None, '\n') => out.extend(std::iter::repeat_n(' ', width)),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests;
