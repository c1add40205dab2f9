//! From plan to SQL: one template per act, plain functions out.

use minijinja::{Environment, UndefinedBehavior, Value};

use crate::error::{Error, Result};
use crate::files;
use crate::plan::Plan;

/// Acts in the order they are created; later ones call earlier ones.
const ACTS: &[&str] = &[
    "own", "open", "rest", "put_back", "loosen", "spread", "lay", "claim", "next_due", "start", "progress", "complete", "fail", "release",
    "snooze", "cancel", "requeue", "bury", "assign", "recover", "explain", "prune", "stats", "enqueue", "fill", "adapt", "ring",
];

/// Who may call a rendered function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Work,
    Operate,
    Nobody,
}

/// A function the queue has, by name and argument types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) audience: Audience,
}

/// The functions and triggers of a queue, as one script to be run in one transaction.
pub fn render(plan: &Plan) -> Result<String> {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Chainable);
    env.set_trim_blocks(false);
    for (name, source) in files::within("engine/acts", "sql") {
        let name = name.rsplit('/').next().unwrap_or(name);
        env.add_template(name, source).map_err(|e| Error::Other(format!("template {name}: {e:#}")))?;
    }
    for (name, value) in &plan.context {
        env.add_global(*name, Value::from_serialize(value));
    }
    let mut script =
        format!("-- Queue {} on {}. Rendered by `gleaner attach`; printed by `gleaner sql {}`.\n", plan.name, plan.table.sql(), plan.name);
    for act in ACTS {
        let template = env.get_template(&format!("{act}.sql")).map_err(|e| Error::Other(format!("template {act}: {e:#}")))?;
        let text = template.render(()).map_err(|e| Error::Other(format!("render {act}: {e:#}")))?;
        if !text.trim().is_empty() {
            script.push('\n');
            script.push_str(text.trim());
            script.push('\n');
        }
    }
    script.push_str("\n-- Functions are executable by everyone from the moment they exist; not these.\n");
    for f in functions(plan) {
        let signature = format!("gleaner.{}({})", f.name, f.arguments);
        script += &format!(
            "alter function {signature} owner to gleaner_engine;\nrevoke all on function {signature} from public, anon, authenticated, service_role;\n"
        );
        let roles = match f.audience {
            Audience::Work => &plan.declaration.grant.work,
            Audience::Operate => &plan.declaration.grant.operate,
            Audience::Nobody => continue,
        };
        if !roles.is_empty() {
            let roles: Vec<String> = roles.iter().map(|r| crate::introspect::quote(r)).collect();
            script += &format!("grant execute on function {signature} to {};\n", roles.join(", "));
        }
    }
    let trigger = env.get_template("trigger.sql").and_then(|t| t.render(())).map_err(|e| Error::Other(format!("render trigger: {e:#}")))?;
    script.push('\n');
    script.push_str(trigger.trim());
    script.push('\n');
    Ok(script)
}

/// Every function the queue has. Kept beside the templates' signatures by a test that compares with the catalogue.
pub(crate) fn functions(plan: &Plan) -> Vec<Function> {
    let at = |pointer: &str| {
        let (head, rest) = pointer.split_once('.').unwrap_or((pointer, ""));
        let value = &plan.context[head];
        (if rest.is_empty() { value } else { &value[rest] }).as_str().unwrap_or_default().to_owned()
    };
    let has = |name: &str| !plan.context[name].is_null();
    let (key, table, status) = (plan.key_type.clone(), plan.table.sql(), at("status.type"));
    let keys = format!("{key}[]");
    let owner = at("owner.type");
    let tenant = if has("tenant") { at("tenant.type") } else { String::new() };
    let name = &plan.name;
    let mut out = Vec::new();
    let mut add = |function: &str, led: bool, arguments: &[&str], audience| {
        let mut all: Vec<&str> = Vec::new();
        if led && !tenant.is_empty() {
            all.push(&tenant);
        }
        all.extend(arguments.iter().filter(|a| !a.is_empty()));
        out.push(Function { name: function.to_owned(), arguments: all.join(", "), audience });
    };
    let (owned, kinds) = (has("owner"), if has("kind") { "text[]" } else { "" });
    if owned {
        add(&format!("own_{name}"), false, &[&owner], Audience::Nobody);
        add(&format!("open_{name}"), false, &[&owner, "timestamptz", "timestamptz"], Audience::Nobody);
        add(&format!("assign_{name}"), true, &[&keys, &owner], Audience::Operate);
    }
    if has("dead") {
        add(&format!("dead_letter_{name}"), false, &[&table, "text"], Audience::Nobody);
    }
    add(&format!("rest_{name}"), false, &[&table, "text", "text", "integer", "integer", "boolean"], Audience::Nobody);
    add(
        &format!("put_back_{name}"),
        false,
        &[&table, &status, "timestamptz", "boolean", "integer", "integer", "text", "text"],
        Audience::Nobody,
    );
    let (own, classes) = if owned { (owner.as_str(), "text[]") } else { ("", "") };
    let holder = if plan.context["holder"]["by"].is_null() { "" } else { "text" };
    add(
        &format!("claim_{name}"),
        true,
        &["text", "integer", own, classes, kinds, "uuid", "boolean", "interval", "interval", holder],
        Audience::Work,
    );
    add(&format!("next_due_{name}"), true, &[own, kinds], Audience::Work);
    add(&format!("start_{name}"), true, &[&keys, "bigint[]"], Audience::Work);
    add(&format!("progress_{name}"), true, &[&key, "bigint", "text", "numeric", "jsonb"], Audience::Work);
    add(&format!("complete_{name}_grouped"), true, &[&keys, "bigint[]", "jsonb[]"], Audience::Work);
    add(&format!("complete_{name}"), true, &[&keys, "bigint[]", "jsonb[]"], Audience::Work);
    add(&format!("complete_{name}"), true, &[&key, "bigint", "jsonb"], Audience::Work);
    add(&format!("fail_{name}"), true, &[&key, "bigint", "text", "text", "boolean", "interval"], Audience::Work);
    add(&format!("release_{name}"), true, &[&keys, "bigint[]"], Audience::Work);
    add(&format!("snooze_{name}"), true, &[&key, "bigint", "timestamptz"], Audience::Work);
    add(&format!("explain_{name}"), true, &[&key, own, kinds], Audience::Work);
    add(&format!("cancel_{name}"), true, &[&keys, "text"], Audience::Operate);
    add(&format!("cancel_{name}_matching"), true, &["jsonb", "text"], Audience::Operate);
    add(&format!("requeue_{name}"), true, &[&keys], Audience::Operate);
    add(&format!("bury_{name}"), true, &[&keys, "text"], Audience::Operate);
    add(&format!("recover_{name}"), false, &["interval"], Audience::Operate);
    if has("finished") {
        add(&format!("prune_{name}"), false, &["integer", "interval"], Audience::Operate);
    }
    add(&format!("stats_{name}"), false, &[], Audience::Operate);
    add(&format!("enqueue_{name}"), true, &["jsonb", "text"], Audience::Operate);
    if has("sheaf") {
        add(&format!("loosen_{name}"), false, &[&keys, "bigint"], Audience::Nobody);
        add(&format!("spread_{name}"), false, &["gleaner.swath", "bigint"], Audience::Nobody);
        add(&format!("number_{name}"), false, &["integer"], Audience::Operate);
        add(&format!("lay_{name}"), false, &["bigint[]", "bigint[]"], Audience::Operate);
    }
    add(&format!("fill_{name}"), false, &[&key, "integer"], Audience::Nobody);
    if plan.declaration.adapt_inserts || !has("sheaf") {
        add(&format!("adapt_{name}"), false, &[], Audience::Nobody);
    }
    if plan.declaration.notify {
        add(&format!("ring_{name}"), false, &[], Audience::Nobody);
    }
    out
}
