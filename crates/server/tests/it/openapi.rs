//! `/openapi.json` describes exactly what the server does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use gleaner_http::Role;
use gleaner_server::router;
use serde_json::{Value, json};

use crate::webhooks::support::{World, world};

/// These follow Supabase's own contract, and are described there.
const ELSEWHERE: [&str; 3] = ["/rest/v1", "/auth/v1", "/realtime/v1"];
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// Every path of the router. It shows them only in its debug output.
fn routes(world: &World) -> BTreeSet<String> {
    let shown = format!("{:?}", router(Arc::clone(world.server.state())));
    let (shown, _) = shown.split_once("fallback_router").unwrap_or((&shown, ""));
    let quoted = shown.split('"').skip(1).step_by(2).filter(|text| text.starts_with('/') && !text.contains("__private"));
    quoted.filter(|path| !ELSEWHERE.iter().any(|prefix| path.starts_with(prefix))).map(str::to_owned).collect()
}

async fn description(world: &World) -> Result<Value> {
    Ok(world.send("GET", "/openapi.json", &[], b"").await?.json())
}

fn described(description: &Value) -> BTreeMap<String, BTreeMap<String, Value>> {
    let paths = description["paths"].as_object().expect("paths");
    let methods = |value: &Value| value.as_object().into_iter().flatten().map(|(name, one)| (name.to_uppercase(), one.clone())).collect();
    paths.iter().map(|(path, value)| (path.clone(), methods(value))).collect()
}

fn operations(description: &Value) -> Vec<(String, String, Value)> {
    described(description)
        .into_iter()
        .flat_map(|(path, methods)| methods.into_iter().map(move |(method, one)| (path.clone(), method, one)))
        .collect()
}

/// A path with its parameters filled in.
fn filled(path: &str) -> String {
    path.replace("{queue}", "jobs")
        .replace("{channel}", "none")
        .replace("{key}", "1")
        .replace("{activity}", "x")
        .replace("{n}", "0")
        .replace("{id}", "x")
}

#[tokio::test]
async fn every_route_is_described_and_every_description_has_a_route() -> Result<()> {
    let world = world().await?;
    let described = described(&description(&world).await?);
    let routes = routes(&world);
    assert!(routes.len() > 20, "the router shows its routes: {routes:?}");
    assert_eq!(described.keys().cloned().collect::<BTreeSet<_>>(), routes);
    for (path, methods) in &described {
        for method in METHODS {
            let status = world.send(method, &filled(path), &[], b"").await?.status;
            assert_eq!(status != 405, methods.contains_key(method), "{method} {path} is answered with {status}");
        }
    }
    Ok(())
}

/// The part that a reference names, or the value itself.
fn resolve<'a>(description: &'a Value, value: &'a Value) -> &'a Value {
    value["$ref"].as_str().and_then(|name| description.pointer(name.trim_start_matches('#'))).unwrap_or(value)
}

#[tokio::test]
async fn every_operation_describes_its_parameters_its_body_and_its_responses() -> Result<()> {
    let world = world().await?;
    let description = description(&world).await?;
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations(&description) {
        let whole = format!("{method} {path}");
        for needed in ["operationId", "summary", "tags"] {
            assert!(!operation[needed].is_null(), "{whole} has no {needed}");
        }
        assert!(ids.insert(operation["operationId"].to_string()), "{whole}: the operation id is used twice");
        let known: BTreeSet<_> = description["tags"].as_array().expect("tags").iter().map(|tag| tag["name"].clone().to_string()).collect();
        assert!(operation["tags"].as_array().is_some_and(|tags| tags.iter().all(|tag| known.contains(&tag.to_string()))), "{whole}");
        let answers = operation["responses"].as_object().expect("responses");
        for (status, answer) in answers.iter().filter(|(status, _)| status.starts_with('2') && *status != "204") {
            let content = answer["content"].as_object().into_iter().flat_map(|content| content.values());
            assert!(content.clone().count() > 0 && content.clone().all(|one| one["schema"].is_object()), "{whole} {status}");
        }
        let in_path = path.matches('{').count();
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let is_path = |one: &&Value| {
            let one = resolve(&description, one);
            one["in"] == "path" && path.contains(&format!("{{{}}}", one["name"].as_str().unwrap_or_default()))
        };
        assert_eq!(parameters.iter().filter(is_path).count(), in_path, "{whole}");
        // If a handler reads a body, its example has one.
        if let Some(body) = operation["requestBody"]["content"]["application/json"].as_object() {
            assert!(body.contains_key("example") && body["schema"].is_object(), "{whole}");
        }
    }
    Ok(())
}

/// Every `$ref` below `value`.
fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(name, value)| if name == "$ref" { value.as_str().into_iter().collect() } else { references(value) })
            .collect(),
        Value::Array(list) => list.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn every_reference_leads_somewhere_and_every_component_is_referred_to() -> Result<()> {
    let world = world().await?;
    let description = description(&world).await?;
    let references = references(&description);
    for reference in &references {
        assert!(description.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
    }
    for part in ["schemas", "responses", "parameters"] {
        for name in description["components"][part].as_object().into_iter().flat_map(|map| map.keys()) {
            assert!(references.contains(&format!("#/components/{part}/{name}").as_str()), "{part}/{name} is used nowhere");
        }
    }
    Ok(())
}

/// The closed objects that a schema allows, as lists of their fields.
fn forms(description: &Value, schema: &Value) -> Vec<BTreeSet<String>> {
    let schema = resolve(description, schema);
    if let Some(choices) = schema["oneOf"].as_array() {
        return choices.iter().flat_map(|choice| forms(description, choice)).collect();
    }
    let is_closed = schema["additionalProperties"] == json!(false);
    schema["properties"].as_object().filter(|_| is_closed).map(|fields| fields.keys().cloned().collect()).into_iter().collect()
}

/// Handlers refuse unknown fields and list the known ones in the error: exactly the described list.
#[tokio::test]
async fn bodies_have_the_fields_that_handlers_read() -> Result<()> {
    let world = world().await?;
    let key = format!("Bearer {}", gleaner_server::load_access(&world.home.0)?.project_key(Role::Service));
    let mut compared = 0;
    let description = description(&world).await?;
    for (path, method, operation) in operations(&description) {
        let forms = forms(&description, &operation["requestBody"]["content"]["application/json"]["schema"]);
        if forms.is_empty() {
            continue;
        }
        let answer = world.send(&method, &filled(&path), &[("authorization", &key)], br#"{"no such field": 1}"#).await?;
        let message = answer.json()["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(answer.status, 400, "{method} {path}: {message}");
        let (_, expected) = message.split_once("expected").with_context(|| format!("{path}: {message}"))?;
        let read: BTreeSet<String> = expected.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        // The tenant is removed before one row is read, and a choice is described variant by variant.
        let all: BTreeSet<String> = match forms.as_slice() {
            [one] => one.clone(),
            many if many[0].contains("lease") => many[0].iter().filter(|name| *name != "tenant").cloned().collect(),
            many => many.iter().flatten().cloned().collect(),
        };
        assert_eq!(read, all, "{method} {path}");
        compared += 1;
    }
    assert!(compared >= 15, "{compared}");
    Ok(())
}

#[tokio::test]
async fn the_description_and_its_page_are_served_without_a_key() -> Result<()> {
    let world = world().await?;
    let served = world.send("GET", "/openapi.json", &[], b"").await?;
    assert_eq!((served.status, served.header("content-type")), (200, Some("application/json")));
    assert_eq!(served.json()["info"]["version"], env!("CARGO_PKG_VERSION"));
    let page = world.send("GET", "/docs", &[], b"").await?;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let text = String::from_utf8(page.body)?;
    // The page contains everything and loads nothing from other hosts.
    assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("src="), "self-contained");
    Ok(())
}

#[tokio::test]
async fn every_error_has_the_same_four_fields() -> Result<()> {
    let world = world().await?;
    let access = gleaner_server::load_access(&world.home.0)?;
    let (key, wrong_key) = (access.project_key(Role::Service), "none".to_owned());
    for (method, target, key, status) in [
        ("GET", "/no/such/route", None, 404),
        ("GET", "/v1/no-such-route", None, 404),
        ("DELETE", "/v1/queues", Some(&key), 405),
        ("PUT", "/rest/v1/", Some(&key), 404),
        ("PUT", "/rest/v1/rpc/claim_jobs", Some(&key), 405),
        ("GET", "/v1/queues", None, 401),
        ("GET", "/v1/queues", Some(&wrong_key), 401),
        ("GET", "/v1/queues/%FF/items/1/explain", Some(&key), 400),
        ("GET", "/v1/contacts/unmatched?limit=many", Some(&key), 400),
        ("GET", "/v1/queues/none/items/1/explain", Some(&key), 404),
    ] {
        let headers: Vec<(&str, &str)> = key.iter().map(|key| ("apikey", key.as_str())).collect();
        let answer = world.send(method, target, &headers, b"").await?;
        let said = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, status, "{method} {target}: {said}");
        let fields: BTreeSet<String> = answer.json().as_object().into_iter().flat_map(|map| map.keys().cloned()).collect();
        let expected = ["code", "details", "hint", "message"].map(str::to_owned);
        assert_eq!(fields, BTreeSet::from(expected), "{method} {target}: {said}");
    }
    Ok(())
}
