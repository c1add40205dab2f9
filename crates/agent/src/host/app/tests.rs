use super::*;

#[test]
fn an_address_is_encrypted_or_on_this_machine() {
    for good in ["https://crm.example.com", "http://localhost:5173/app", "http://127.0.0.1:1", "http://[::1]:8080", "http://crm.localhost"]
    {
        assert!(web_address(good).is_ok(), "{good}");
    }
    let bad = [
        "http://crm.example.com",
        "http://192.168.1.5",
        "http://localhost.example.com",
        "http://127.0.0.1.example.com",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "blob:https://a",
        "https://a:b@example.com",
        "crm",
        "",
    ];
    for bad in bad {
        assert!(web_address(bad).is_err(), "{bad}");
    }
}

#[test]
fn an_app_is_known_by_its_origin_and_is_not_ourselves() {
    let origin = |url: &str| Entry::new("a", url, None).map(|entry| entry.origin()).unwrap_or_default();
    assert_eq!(origin("http://LOCALHOST:5173/x?y#z"), "http://localhost:5173");
    assert_eq!(origin("https://crm.example.com:443/"), "https://crm.example.com");
    for own in ["http://127.0.0.1:7433/host", "http://localhost:7433", "http://[::1]:7433/"] {
        assert!(Entry::new("a", own, Some("127.0.0.1:7433")).is_err(), "{own}");
    }
    assert!(Entry::new("a", "http://localhost:7434", Some("127.0.0.1:7433")).is_ok());
    assert!(Entry::new(" ", "https://a.example", None).is_err() && Entry::new(&"x".repeat(65), "https://a.example", None).is_err());
}
