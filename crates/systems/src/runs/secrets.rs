//! Keeps secret values out of everything that leaves the runner.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::Value;

const MASK: &str = "•••";

/// The secret values of one row, in every form in which they may appear.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    values: Vec<String>,
    /// Longest first: a form that contains another is replaced as a whole.
    forms: Vec<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.values.len())
    }
}

impl Secrets {
    pub(super) fn add(&mut self, value: &str) {
        if value.is_empty() || self.values.iter().any(|known| known == value) {
            return;
        }
        self.values.push(value.to_owned());
        self.forms.extend(forms(value));
        self.forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        self.forms.dedup();
    }

    pub(super) fn values(&self) -> &[String] {
        &self.values
    }

    pub(super) fn mask(&self, text: &str) -> String {
        self.forms
            .iter()
            .fold(text.to_owned(), |text, form| if text.contains(form.as_str()) { text.replace(form.as_str(), MASK) } else { text })
    }

    /// The value with every text in it masked, names included.
    pub(super) fn mask_all(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.mask(&text)),
            Value::Array(list) => Value::Array(list.into_iter().map(|value| self.mask_all(value)).collect()),
            Value::Object(map) => Value::Object(map.into_iter().map(|(name, value)| (self.mask(&name), self.mask_all(value))).collect()),
            other => other,
        }
    }
}

/// The value as it is, and as URLs, JSON, HTML and base64 write it.
fn forms(value: &str) -> Vec<String> {
    let form: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
    let percent = form.replace('+', "%20");
    let json = Value::String(value.to_owned()).to_string();
    let html = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let quoted = html.replace('"', "&quot;");
    let mut forms = vec![
        value.to_owned(),
        percent.to_lowercase(),
        // Browsers leave more characters as they are in a path than in a form.
        reqwest::Url::parse("http://x/")
            .map(|mut url| {
                url.set_path(value);
                url.path()[1..].to_owned()
            })
            .unwrap_or_default(),
        reqwest::Url::parse("http://x/")
            .map(|mut url| {
                url.set_query(Some(value));
                url.query().unwrap_or_default().to_owned()
            })
            .unwrap_or_default(),
        form,
        percent,
        json[1..json.len() - 1].to_owned(),
        quoted.replace('\'', "&#39;"),
        quoted.replace('\'', "&#x27;"),
        html,
        quoted,
    ];
    forms.extend([STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD].iter().map(|engine| engine.encode(value)));
    forms.retain(|form| !form.is_empty());
    forms
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_is_masked_in_every_form() {
        let secret = "p4ss w\"ö<r>d&/+'";
        let mut secrets = Secrets::default();
        secrets.add(secret);
        secrets.add("");
        for form in forms(secret) {
            let masked = secrets.mask(&format!("before {form} after"));
            assert_eq!(masked, format!("before {MASK} after"), "{form}");
        }
        let masked = secrets.mask_all(json!({secret: [format!("{secret}!"), 1]}));
        assert_eq!(masked, json!({MASK: [format!("{MASK}!"), 1]}));
    }

    #[test]
    fn a_secret_within_another_is_masked_with_it() {
        let mut secrets = Secrets::default();
        secrets.add("abc");
        secrets.add("abcdef");
        assert_eq!(secrets.mask("abcdef abc"), format!("{MASK} {MASK}"));
    }
}
