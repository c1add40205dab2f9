use super::*;

fn home() -> PathBuf {
    let home = std::env::temp_dir().join(format!("gleaner-sessions-{}", uuid::Uuid::new_v4().simple()));
    fs::create_dir(&home).expect("a folder");
    home
}

fn session(url: &str, signed_in_at: i64) -> Session {
    Session {
        url: url.into(),
        anon_key: "public".into(),
        access_token: "a".into(),
        refresh_token: "r".into(),
        expires_at: 0,
        user_id: "u".into(),
        email: "ada@example.com".into(),
        signed_in_at,
    }
}

#[test]
fn each_project_has_a_session_of_its_own_and_the_last_sign_in_goes_first() {
    let home = home();
    let urls = ["http://127.0.0.1:54321", "https://a.supabase.co", "https://a.supabase.co/b"];
    for (n, url) in (1..).zip(urls) {
        session::save(&path(&home, url), &session(url, n)).expect("saved");
    }
    for url in urls {
        let found = find(&home, Some(&format!("{url}/"))).expect("readable").expect("kept");
        assert_eq!(found.session.url, url);
    }
    assert_eq!(find(&home, Some("https://b.supabase.co")).expect("readable"), None);
    let order: Vec<String> = all(&home).expect("readable").into_iter().map(|kept| kept.session.url).collect();
    assert_eq!(order, [urls[2], urls[1], urls[0]]);
    assert_eq!(find(&home, None).expect("readable").map(|kept| kept.session.url).as_deref(), Some(urls[2]));
    fs::remove_dir_all(home).expect("removed");
}

/// A user who signed in with an earlier version stays signed in.
#[test]
fn the_only_session_of_earlier_versions_becomes_that_of_its_project() {
    let home = home();
    let former = session::former_path(&home);
    session::save(&former, &session("https://a.supabase.co", 0)).expect("saved");
    let text = fs::read_to_string(&former).expect("written");
    let earlier: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let mut earlier = earlier.as_object().expect("an object").clone();
    earlier.remove("signed_in_at");
    fs::write(&former, serde_json::to_string(&earlier).expect("JSON")).expect("written");
    let found = find(&home, None).expect("readable").expect("kept");
    assert_eq!((found.path, found.session.email.as_str()), (path(&home, "https://a.supabase.co"), "ada@example.com"));
    assert!(!former.exists());

    // A project that was signed in to again since then has the newer session.
    session::save(&path(&home, "https://a.supabase.co"), &session("https://a.supabase.co", 7)).expect("saved");
    session::save(&former, &session("https://a.supabase.co", 0)).expect("saved");
    assert_eq!(find(&home, None).expect("readable").map(|kept| kept.session.signed_in_at), Some(7));
    assert!(!former.exists());
    fs::remove_dir_all(home).expect("removed");
}
