use super::*;

fn channel(oauth_token: Value) -> Channel {
    let settings = serde_json::Map::from_iter([("oauth_token".to_owned(), oauth_token)]);
    Channel {
        id: uuid::Uuid::nil(),
        name: "mail".into(),
        provider_code: "gmail".into(),
        is_active: true,
        sales_id: None,
        auto_create_contacts: false,
        settings: settings.into(),
    }
}

#[test]
fn a_grant_is_read_in_every_form_people_write_it() {
    for form in [json!("1//abc"), json!({"refresh_token": "1//abc"}), json!("{\"refresh_token\":\"1//abc\"}")] {
        assert_eq!(Grant::of(&channel(form)).unwrap().refresh_token.as_str(), "1//abc");
    }
    for nothing in [json!(""), json!({}), json!({"refresh_token": ""}), json!(7), json!("{broken")] {
        assert!(Grant::of(&channel(nothing)).is_none());
    }
}

#[test]
fn what_is_stored_is_read_back_and_is_fresh_for_four_fifths_of_its_life() {
    let mut grant = Grant::of(&channel(json!("1//abc"))).unwrap();
    grant.access = Some(Access::granted("ya29", 3600));
    let again = Grant::of(&channel(grant.to_setting())).unwrap();
    let access = again.access.unwrap();
    assert_eq!(access.token.as_str(), "ya29");
    assert!(access.is_fresh());
    let left = access.expires_at.duration_since(access.refresh_at).unwrap();
    assert!(left >= Duration::from_secs(719) && left <= Duration::from_secs(721), "{left:?}");
    assert!(!Access::granted("ya29", 0).is_fresh());
}

#[test]
fn a_grant_is_never_printed() {
    let mut grant = Grant::of(&channel(json!("1//abc"))).unwrap();
    grant.access = Some(Access::granted("ya29", 3600));
    let printed = format!("{grant:?} {:?}", grant.access);
    assert!(!printed.contains("abc") && !printed.contains("ya29"), "{printed}");
}
