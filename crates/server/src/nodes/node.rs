//! Whose device it is, and its name.

use gleaner_http::{Caller, Role};
use http::HeaderMap;
use http::header::USER_AGENT;
use serde_json::{Map, Value};
use uuid::Uuid;

/// The default of `crm_processing_nodes.app_name`; other applications send their own name.
const APP: &str = "atomic-crm";
/// Names are for people to read, so they are cut at this length.
const LONGEST_NAME: usize = 80;

/// Whose device it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Who {
    /// A signed-in user, whose salesperson the database knows.
    User(Uuid),
    /// A salesperson, named by a program with a key.
    Sales(i64),
}

impl Who {
    /// People are identified by their token. Programs with a key name the person they work for.
    pub fn of(caller: &Caller, owner: Option<i64>) -> Option<Self> {
        let Caller::Token { role, claims } = caller else { return None };
        Self::by(role.name(), claims, owner)
    }

    pub fn by(role: &str, claims: &Map<String, Value>, owner: Option<i64>) -> Option<Self> {
        let is_worker = claims.get("worker") == Some(&Value::Bool(true));
        if role == Role::Service.name() || is_worker {
            return owner.map(Self::Sales);
        }
        let user = claims.get("sub").and_then(Value::as_str).and_then(|id| id.parse().ok());
        user.filter(|_| role == Role::Authenticated.name()).map(Self::User)
    }
}

/// The names that the device and its application send.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Named {
    pub app: String,
    pub device: String,
}

impl Named {
    /// From the names in the request, else from the headers of its HTTP client.
    pub fn new(app: Option<&str>, device: Option<&str>, headers: &HeaderMap) -> Self {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let words = [device, header("x-client-info"), header(USER_AGENT.as_str())];
        let device = words.into_iter().flatten().map(readable).find(|name| !name.is_empty());
        let app = app.map(readable).filter(|name| !name.is_empty());
        Self { app: app.unwrap_or_else(|| APP.to_owned()), device: device.unwrap_or_else(|| "unknown".to_owned()) }
    }

    pub fn by(self, who: Option<Who>) -> Option<Node> {
        who.map(|who| Node { who, named: self })
    }
}

fn readable(name: &str) -> String {
    let kept: String = name.chars().filter(|letter| !letter.is_control()).take(LONGEST_NAME).collect();
    kept.trim().to_owned()
}

/// One device of one person: one row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    pub who: Who,
    pub named: Named,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn people_are_who_their_token_says_and_programs_work_for_whom_they_name() {
        let user = Uuid::from_u128(7);
        let person = claims(json!({"sub": user}));
        assert_eq!(Who::by("authenticated", &person, Some(9)), Some(Who::User(user)), "naming another does not make it so");
        assert_eq!(Who::by("anon", &person, Some(9)), None);
        assert_eq!(Who::by("service_role", &claims(json!({})), Some(9)), Some(Who::Sales(9)));
        assert_eq!(Who::by("service_role", &claims(json!({})), None), None);
        assert_eq!(Who::by("authenticated", &claims(json!({"sub": user, "worker": true})), Some(9)), Some(Who::Sales(9)));
    }

    #[test]
    fn a_device_is_called_as_it_says_else_as_its_client_does() {
        let mut headers = HeaderMap::new();
        assert_eq!(Named::new(None, None, &headers), Named { app: "atomic-crm".into(), device: "unknown".into() });
        headers.insert("user-agent", "curl/8".parse().unwrap());
        assert_eq!(Named::new(None, None, &headers).device, "curl/8");
        headers.insert("x-client-info", "supabase-js-web/2.58.0".parse().unwrap());
        assert_eq!(Named::new(None, Some(" \n"), &headers).device, "supabase-js-web/2.58.0");
        let long = format!("Ann's\u{7} Mac{}", "!".repeat(500));
        let named = Named::new(Some("notes"), Some(&long), &headers);
        assert!(named.app == "notes" && named.device.starts_with("Ann's Mac!") && named.device.len() == LONGEST_NAME, "{named:?}");
    }
}
