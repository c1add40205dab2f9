use gleaner_ingest::{Channel, Inbound, Refusal, Request, Sample, Setting, Verified, refusal::Why};
use serde_json::json;

use super::*;

#[derive(Debug)]
struct Post;

impl Provider for Post {
    fn code(&self) -> &'static str {
        "post"
    }
    fn title(&self) -> &'static str {
        "Post"
    }
    fn settings(&self) -> &'static [Setting] {
        &[
            Setting { name: "basic_auth.username", secret: false, required: true, about: "" },
            Setting { name: "basic_auth.password", secret: true, required: true, about: "" },
            Setting { name: "token", secret: true, required: false, about: "" },
            Setting { name: "header", secret: false, required: false, about: "" },
        ]
    }
    fn verify(&self, _: &Channel, _: &Request<'_>) -> Result<Verified, Refusal> {
        Err(Why::Unsigned.into())
    }
    fn normalise(&self, _: &Channel, _: &Request<'_>) -> Result<Inbound, Refusal> {
        Ok(Inbound::Fetch)
    }
    fn compose(&self, _: &Channel, _: &str, _: i64, _: &gleaner_ingest::Message<'_>) -> Result<Sample, String> {
        Err("none".into())
    }
}

fn map(value: Value) -> Settings {
    as_settings(&value)
}

#[test]
fn secrets_are_taken_out_and_put_back_whole() {
    let settings = map(json!({
        "basic_auth": {"username": "ada", "password": "p", "realm": "unknown"}, "token": {"access": "a", "refresh": "r"},
        "token_previous": "t", "header": "X-Key", "webhook_secret": "w", "default_region": "DE", "public_url": null
    }));
    let (masked, secrets) = split(Some(&Post), &settings);
    assert_eq!(
        Value::from(masked.clone()),
        json!({"basic_auth": {"username": "ada", "password": MASK, "realm": MASK}, "token": MASK, "token_previous": MASK,
                   "header": "X-Key", "webhook_secret": MASK, "default_region": "DE", "public_url": null})
    );
    assert_eq!(join(Some(&Post), &masked, &secrets), settings);
    let (all, _) = split(None, &map(json!({"auth_token": "x", "default_region": "US"})));
    assert_eq!(Value::from(all), json!({"auth_token": MASK, "default_region": "US"}), "an unknown provider's settings are secret");
}

#[test]
fn a_clear_value_replaces_a_mask_keeps_and_an_absent_one_is_gone() {
    let secrets = map(json!({"token": "old", "basic_auth": {"password": "p"}, "gone": "g"}));
    let config = map(json!({"token": "new", "basic_auth": {"username": "ada", "password": MASK}, "other": MASK, "header": MASK}));
    let whole = join(Some(&Post), &config, &secrets);
    assert_eq!(Value::from(whole), json!({"token": "new", "basic_auth": {"username": "ada", "password": "p"}, "header": MASK}));
}

#[test]
fn an_empty_secret_stays_visibly_empty() {
    let (masked, secrets) = split(Some(&Post), &map(json!({"token": ""})));
    assert_eq!((Value::from(masked), secrets.len()), (json!({"token": ""}), 0));
}

#[test]
fn odd_json_in_the_column_is_hidden_and_not_lost() {
    assert_eq!(Value::from(map(json!("{\"token\": \"t\"}"))), json!({"token": "t"}));
    for odd in [json!("text"), json!([1]), json!(7)] {
        let (masked, secrets) = split(Some(&Post), &map(odd.clone()));
        assert_eq!(Value::from(masked), json!({"config": MASK}));
        assert_eq!(secrets["config"], odd);
    }
}

#[test]
fn dotted_paths_reach_inside() {
    let mut settings = map(json!({"basic_auth": "not an object"}));
    put(&mut settings, "basic_auth.password", json!("p"));
    assert_eq!(get(&settings, "basic_auth.password"), Some(&json!("p")));
    put(&mut settings, "basic_auth.password", Value::Null);
    assert_eq!(Value::from(settings), json!({}));
}
