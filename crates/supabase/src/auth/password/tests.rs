use super::*;

#[tokio::test]
async fn only_the_password_that_was_hashed_fits() -> Result<(), Busy> {
    let hasher = Hasher::new();
    let kept = hasher.hash(Password::new("correct horse")).await?;
    assert!(is_current(&kept), "{kept}");
    assert!(hasher.check(Password::new("correct horse"), Some(kept.clone())).await?);
    assert!(!hasher.check(Password::new("battery staple"), Some(kept)).await?);
    let ruinous =
        ["$argon2id$v=19$m=4294967295,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2g", "$2b$31$LJ3ZHoFJgxeAtcPCNgJIoOKwOeAYRUtV2FDOUjNQOfI5bUXGzVJpO"];
    for unreadable in ["", "plain", "$2a$", "$argon2id$v=19$m=1"].into_iter().chain(ruinous) {
        assert!(!hasher.check(Password::new(""), Some(unreadable.into())).await?, "{unreadable}");
    }
    Ok(())
}

#[tokio::test]
async fn a_bcrypt_hash_of_an_imported_user_fits_until_it_is_replaced() -> Result<(), Busy> {
    let imported = bcrypt::hash("correct horse", 4).expect("a hash");
    assert!(!is_current(&imported));
    assert!(Hasher::new().check(Password::new("correct horse"), Some(imported.clone())).await?);
    assert!(!Hasher::new().check(Password::new("correct"), Some(imported)).await?);
    Ok(())
}

#[test]
fn an_unknown_user_costs_the_same_as_a_known_one() {
    assert!(is_current(NO_ACCOUNT));
    let parsed = PasswordHash::new(NO_ACCOUNT).expect("readable, or checking it would take no time");
    assert_eq!((parsed.salt.map(|s| s.len() > 0), parsed.hash.map(|h| h.len())), (Some(true), Some(32)));
}

#[test]
fn a_password_does_not_show_itself() {
    let password = Password::random();
    assert_eq!(format!("{password:?}"), "Password(…)");
    assert_eq!(password.reveal().len(), 27);
    assert_ne!(password.reveal(), Password::random().reveal());
}
