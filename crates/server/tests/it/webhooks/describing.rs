//! `/openapi.json` describes exactly what the server does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use gleaner_http::Role;
use gleaner_server::openapi::description;
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

fn described() -> BTreeMap<String, BTreeMap<String, Value>> {
    let paths = description()["paths"].as_object().expect("paths");
    let methods = |value: &Value| value.as_object().into_iter().flatten().map(|(name, one)| (name.to_uppercase(), one.clone())).collect();
    paths.iter().map(|(path, value)| (path.clone(), methods(value))).collect()
}

fn operations() -> Vec<(String, String, Value)> {
    described().into_iter().flat_map(|(path, methods)| methods.into_iter().map(move |(method, one)| (path.clone(), method, one))).collect()
}

/// A path with its parameters filled in.
fn filled(path: &str) -> String {
    path.replace("{queue}", "jobs").replace("{channel}", "nobody").replace("{key}", "1").replace("{activity}", "x").replace("{n}", "0")
}

#[tokio::test]
async fn every_route_is_described_and_every_description_has_a_route() -> Result<()> {
    let world = world().await?;
    let described = described();
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

#[test]
fn every_operation_says_what_it_takes_and_answers() {
    for (path, method, operation) in operations() {
        let whole = format!("{method} {path}");
        for needed in ["operationId", "summary", "tags"] {
            assert!(!operation[needed].is_null(), "{whole} has no {needed}");
        }
        let known: BTreeSet<_> =
            description()["tags"].as_array().expect("tags").iter().map(|tag| tag["name"].clone().to_string()).collect();
        assert!(operation["tags"].as_array().is_some_and(|tags| tags.iter().all(|tag| known.contains(&tag.to_string()))), "{whole}");
        let answers = operation["responses"].as_object().expect("responses");
        for (status, answer) in answers.iter().filter(|(status, _)| status.starts_with('2') && *status != "204") {
            let content = answer["content"].as_object().into_iter().flat_map(|content| content.values());
            assert!(content.clone().count() > 0 && content.clone().all(|one| one["schema"].is_object()), "{whole} {status}");
        }
        let in_path = path.matches('{').count();
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let is_path = |one: &&Value| {
            let one = one["$ref"].as_str().and_then(|name| description().pointer(name.trim_start_matches('#'))).unwrap_or(one);
            one["in"] == "path" && path.contains(&format!("{{{}}}", one["name"].as_str().unwrap_or_default()))
        };
        assert_eq!(parameters.iter().filter(is_path).count(), in_path, "{whole}");
        // If a handler reads a body, its example has one.
        if let Some(body) = operation["requestBody"]["content"]["application/json"].as_object() {
            assert!(body.contains_key("example") && body["schema"].is_object(), "{whole}");
        }
    }
}

/// The closed objects that a schema allows, as lists of their fields.
fn forms(schema: &Value) -> Vec<BTreeSet<String>> {
    if let Some(name) = schema["$ref"].as_str() {
        return forms(description().pointer(name.trim_start_matches('#')).expect("a schema"));
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        return choices.iter().flat_map(forms).collect();
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
    for (path, method, operation) in operations() {
        let forms = forms(&operation["requestBody"]["content"]["application/json"]["schema"]);
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
async fn the_description_and_its_page_are_served_to_everybody() -> Result<()> {
    let world = world().await?;
    let served = world.send("GET", "/openapi.json", &[], b"").await?;
    assert_eq!((served.status, served.header("content-type")), (200, Some("application/json")));
    assert_eq!(&served.json(), description());
    assert_eq!(served.json()["info"]["version"], env!("CARGO_PKG_VERSION"));
    let page = world.send("GET", "/docs", &[], b"").await?;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let text = String::from_utf8(page.body)?;
    // The page contains everything and loads nothing from other hosts.
    assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("src="), "self-contained");
    Ok(())
}
