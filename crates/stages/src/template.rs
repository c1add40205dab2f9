//! Prompts, URLs and bodies as templates: which variables they may use, and how their errors are reported.

use std::sync::Arc;

use gleaner::Failure;
use minijinja::{Environment, UndefinedBehavior};
use serde_json::{Value, json};

use super::Seen;
use super::failure::invalid;

/// The variables of a template; [`variables`] fills them in.
const NAMES: &[&str] = &["item", "record", "text", "results", "language", "written"];

/// A template that was parsed without errors.
#[derive(Debug, Clone)]
pub struct Template {
    environment: Arc<Environment<'static>>,
    pub source: String,
}

impl Template {
    /// The error names the line.
    pub fn new(name: &str, source: String) -> Result<Self, String> {
        Self::read(name, source, Environment::new())
    }

    /// A template that may also use `{{ env("TOKEN") }}`: for headers, which carry keys. Prompts and bodies must not contain
    /// them.
    pub fn with_environment(name: &str, source: String) -> Result<Self, String> {
        let mut environment = Environment::new();
        environment.add_function("env", |name: String| {
            std::env::var(&name).map_err(|_| minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, format!("{name} is not set")))
        });
        Self::read(name, source, environment)
    }

    fn read(name: &str, source: String, mut environment: Environment<'static>) -> Result<Self, String> {
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.add_template_owned("it", source.clone()).map_err(|error| {
            let line = error.line().map(|line| format!(", line {line}")).unwrap_or_default();
            format!("{name}{line}: {}", error.detail().map_or_else(|| error.kind().to_string(), str::to_owned))
        })?;
        let builtin: Vec<String> = environment.globals().map(|(name, _)| name.to_owned()).collect();
        let is_known = |name: &str| NAMES.contains(&name) || builtin.iter().any(|known| known == name);
        // A misspelt name would leave a gap in every prompt without any error.
        let unknown = |template: minijinja::Template<'_, '_>| template.undeclared_variables(false).into_iter().find(|name| !is_known(name));
        if let Some(unknown) = environment.get_template("it").ok().and_then(unknown) {
            return Err(format!("{name}: there is no {unknown:?}; a template can speak of {}", NAMES.join(", ")));
        }
        Ok(Self { environment: Arc::new(environment), source })
    }

    pub fn render(&self, seen: &Seen<'_>, language: Option<&str>) -> Result<String, Failure> {
        let filled = self.environment.get_template("it").and_then(|template| template.render(variables(seen, language)));
        filled.map_err(|error| {
            let line = error.line().map(|line| format!(" (line {line} of the template)")).unwrap_or_default();
            invalid(format!(
                "the template does not fit the item: {}{line}",
                error.detail().map_or_else(|| error.kind().to_string(), str::to_owned)
            ))
        })
    }
}

/// The variables that a template may use.
fn variables(seen: &Seen<'_>, language: Option<&str>) -> Value {
    let detected = seen.results.get("language").and_then(|found| found["name"].as_str());
    let language = match language {
        None | Some("auto") => detected.unwrap_or("the language of the text"),
        Some(fixed) => fixed,
    };
    json!({
        "item": {
            "queue": seen.queue, "id": seen.item.key, "kind": seen.item.kind, "owner": seen.item.owner,
            "attempts": seen.item.attempts, "payload": seen.item.payload,
        },
        "record": seen.record,
        "text": seen.text,
        "results": seen.results,
        "language": language,
        "written": seen.written.format("%A, %Y-%m-%d %H:%M").to_string(),
    })
}
