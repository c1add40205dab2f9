use super::*;

fn message() -> Value {
    json!({"type": "SUPABASE_CONFIG", "payload": {
            "appName": "atomic-crm", "url": "https://xxxxx.supabase.co/", "anonKey": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.sig",
            "tables": ["activities"], "filters": {"activities": "processing_status=eq.raw"}}})
}

#[test]
fn the_documented_message_is_read() {
    let place = Place::read(message()).unwrap();
    assert_eq!((place.url.as_str(), place.tables.as_slice()), ("https://xxxxx.supabase.co", ["activities".to_owned()].as_slice()));
    let mut without = message();
    without["payload"].as_object_mut().unwrap().remove("filters");
    assert!(Place::read(without).unwrap().filters.is_empty(), "filters are optional");
}

#[test]
fn whatever_does_not_fit_is_refused_and_named() {
    let secret = format!("x.{}.y", URL_SAFE_NO_PAD.encode(r#"{"role":"service_role"}"#));
    let wrong = [
        ("/type", json!("SUPABASE"), "type"),
        ("/payload/appName", json!(""), "appName"),
        ("/payload/appName", json!("<b>x</b>"), "appName"),
        ("/payload/appName", json!(7), "string"),
        ("/payload/url", json!("http://crm.example.com"), "url"),
        ("/payload/url", json!("javascript:alert(1)"), "url"),
        ("/payload/url", json!("https://a.example?x=1"), "url"),
        ("/payload/anonKey", json!(""), "anonKey"),
        ("/payload/anonKey", json!("a\r\nb"), "anonKey"),
        ("/payload/anonKey", json!("sb_secret_abc"), "secret"),
        ("/payload/anonKey", json!(secret), "secret"),
        ("/payload/tables", json!([]), "tables"),
        ("/payload/tables", json!(["a; drop table b"]), "tables[0]"),
        ("/payload/tables", json!(["a", "a"]), "tables[1]"),
        ("/payload/tables", json!("activities"), "sequence"),
        ("/payload/filters", json!({"deals": "a=eq.1"}), "deals"),
        ("/payload/filters", json!({"activities": "nonsense"}), "filters.activities"),
        ("/payload/filters", json!({"activities": "a=like.x"}), "filters.activities"),
    ];
    for (pointer, value, named) in wrong {
        let mut message = message();
        *message.pointer_mut(pointer).unwrap() = value.clone();
        let error = Place::read(message).map(|_| String::new()).unwrap_or_else(|error| error.to_string());
        assert!(error.contains(named), "{pointer} {value}: {error}");
    }
    let mut more = message();
    more["payload"]["serviceKey"] = json!("x");
    assert!(Place::read(more).unwrap_err().to_string().contains("serviceKey"));
    for nonsense in [json!(null), json!("SUPABASE_CONFIG"), json!([]), json!({"type": "SUPABASE_CONFIG"})] {
        assert!(Place::read(nonsense).is_err());
    }
}

#[test]
fn a_key_is_never_shown_whole() {
    let place = Place::read(message()).unwrap();
    let shown = place.shown().to_string();
    assert!(!shown.contains(&place.anon_key) && shown.contains("eyJhbG…"), "{shown}");
    assert_eq!(masked("short-key"), "…");
    assert!(!format!("{place:?}").contains("eyJ"));
}
