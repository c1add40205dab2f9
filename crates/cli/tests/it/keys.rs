//! The project's keys.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::Gleaner;

#[test]
fn status_prints_keys_that_stay_the_same_and_hide_their_secret() {
    let gleaner = Gleaner::migrated();
    let first = gleaner.ok(&["status", "-o", "env"]);
    for name in ["DB_URL=", "ANON_KEY=\"eyJ", "SERVICE_ROLE_KEY=\"eyJ"] {
        assert!(first.lines().any(|line| line.starts_with(name)), "{name}: {first}");
    }
    assert_eq!(gleaner.ok(&["status", "-o", "env"]), first);
    let json = gleaner.json(&["status"]);
    assert!(json["SERVICE_ROLE_KEY"].as_str().is_some_and(|key| first.contains(key)));
    let secret = gleaner.home().join("jwt.secret");
    assert_eq!(std::fs::metadata(&secret).expect("made").permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(secret).expect("readable");
    assert!(!first.contains(text.trim()));
    assert!(!gleaner.ok(&["status"]).contains("eyJ"), "not on people's screens");
}

#[test]
fn a_short_secret_is_reported_and_the_status_is_still_shown() {
    let gleaner = Gleaner::migrated();
    let ran = gleaner.command(&["status", "-o", "env"]).env("JWT_SECRET", "short").output().expect("runs");
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && out.contains("DB_URL") && err.contains("JWT_SECRET") && !out.contains("ANON_KEY"), "{out}{err}");
}
